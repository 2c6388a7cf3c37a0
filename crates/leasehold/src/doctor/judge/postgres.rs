//! The database.

use leasehold_lease::{
    PostgresPooling, PostgresRoundTrip, PostgresSchema, PostgresServer, PostgresTls, TlsMode,
};

use super::{
    measures::{Spread, shown},
    times::clock_of,
};
use crate::doctor::{
    check::Check,
    facts::{Postgres, Settings},
    finding::Finding,
};

/// The oldest version that is supported.
const VERSION_MIN: u32 = 120_000;
/// From here on every acquisition is felt by who waits for it.
const ROUND_TRIP_LONG: std::time::Duration = std::time::Duration::from_millis(50);
/// From here on times in events and receipts mislead people.
const AHEAD_MICROS_MAX: i64 = 1_000_000;

pub(super) fn judge(facts: &Postgres, settings: &Settings) -> Vec<Finding> {
    let server = &facts.server;
    vec![
        facts.reach.judged(Check::PostgresReach, |()| {
            let role = server.known().map_or_else(String::new, |server| format!(" as {}", server.role));
            Finding::ok(Check::PostgresReach, format!("{} lets us in{role}", facts.place))
        }),
        facts.tls.judged(Check::PostgresTls, |found| tls(*found)),
        server.judged(Check::PostgresVersion, version),
        server.judged(Check::PostgresWritable, writable),
        facts.schema.judged(Check::PostgresSchema, schema),
        rights(facts),
        synchronous_commit(facts),
        server.judged(Check::PostgresFsync, fsync),
        facts.pooling.judged_mildly(Check::PostgresPooler, |pooling| {
            let found = match pooling {
                PostgresPooling::ByTransaction => {
                    "a pooler gives each transaction a session that is free; all statements work that way"
                }
                PostgresPooling::NotSeen => "a connection keeps its session",
            };
            Finding::ok(Check::PostgresPooler, found)
        }),
        server.judged(Check::PostgresConnections, |server| connections(server, settings)),
        facts.round_trips.judged(Check::PostgresRoundTrip, |trips| round_trip(trips)),
        facts.commits.judged(Check::PostgresCommit, |commits| {
            match Spread::of(commits.took.iter().copied()) {
                Some(spread) => Finding::ok(Check::PostgresCommit, spread.shown()),
                None => Finding::skipped(Check::PostgresCommit, "none was made"),
            }
        }),
        facts.round_trips.judged(Check::PostgresClock, |trips| clock(trips)),
    ]
}

fn tls(tls: PostgresTls) -> Finding {
    let check = Check::PostgresTls;
    let mode = tls.mode;
    if tls.is_local {
        return Finding::ok(check, "the way never leaves this machine");
    }
    match (tls.is_used, mode) {
        (true, TlsMode::VerifyFull | TlsMode::VerifyCa) => {
            Finding::ok(check, format!("TLS, and the certificate is looked at (sslmode {mode})"))
        }
        (true, _) => Finding::warn(
            check,
            format!("TLS, but whoever can change traffic can pass for the database (sslmode {mode})"),
            "set `sslmode=verify-full`, and `sslrootcert` where its root is not the system's",
        ),
        (false, _) => Finding::warn(
            check,
            format!("no TLS (sslmode {mode}): whoever is on the way reads and changes everything"),
            "let the database speak TLS and set `sslmode=verify-full`",
        ),
    }
}

fn version(server: &PostgresServer) -> Finding {
    let check = Check::PostgresVersion;
    if server.version_number < VERSION_MIN {
        let next = "use Postgres 12 or newer";
        return Finding::fail(check, format!("Postgres {} is too old", server.version), next);
    }
    Finding::ok(check, format!("Postgres {}", server.version))
}

fn writable(server: &PostgresServer) -> Finding {
    let check = Check::PostgresWritable;
    if server.is_standby {
        return Finding::fail(
            check,
            "it is a standby: no lease can be acquired there",
            "name the primary, or several hosts with `target_session_attrs=read-write`",
        );
    }
    if server.is_read_only {
        return Finding::fail(
            check,
            "transactions only read",
            format!("ALTER ROLE {} SET default_transaction_read_only = off;", server.role),
        );
    }
    Finding::ok(check, "the primary, and transactions write")
}

fn schema(schema: &PostgresSchema) -> Finding {
    let check = Check::PostgresSchema;
    let PostgresSchema { name, version_needed: needed, .. } = schema;
    let migrate = || {
        if schema.may_migrate {
            "run `leasehold migrate`; a start does the same, unless `postgres.migrate` is false".to_owned()
        } else if schema.is_there {
            "run `leasehold migrate` as the role that owns the schema".to_owned()
        } else {
            format!(
                "run `leasehold migrate` as a role that may create schemas, or let an administrator make it first: \
                 CREATE SCHEMA {name} AUTHORIZATION <owner>;"
            )
        }
    };
    match schema.version {
        _ if !schema.is_there => Finding::fail(check, format!("there is no schema {name}"), migrate()),
        None => Finding::fail(
            check,
            format!("the version of the tables in {name} cannot be read"),
            "give our role what postgres.rights names",
        ),
        Some(0) => Finding::fail(check, format!("there are no tables in {name}"), migrate()),
        Some(found) if found < *needed => Finding::fail(
            check,
            format!("the tables in {name} are at version {found}, this build needs {needed}"),
            migrate(),
        ),
        Some(found) if found > *needed => Finding::fail(
            check,
            format!("the tables in {name} are at version {found}, this build knows up to {needed}"),
            "use a newer build",
        ),
        Some(found) => Finding::ok(check, format!("{name} at version {found}")),
    }
}

fn rights(facts: &Postgres) -> Finding {
    let check = Check::PostgresRights;
    facts.schema.judged(check, |schema| {
        if !schema.missing_grants.is_empty() {
            return Finding::fail(check, "our role lacks what it needs", schema.missing_grants.join(" "));
        }
        if schema.version == Some(0) || !schema.is_there {
            return Finding::skipped(check, "there are no tables yet");
        }
        if facts.server.known().is_some_and(|server| server.is_superuser) {
            return Finding::warn(
                check,
                "our role is a superuser",
                "serve as a role with the grants of sql/README.md and no more",
            );
        }
        if schema.excess_rights.is_empty() {
            return Finding::ok(check, "our role has what it needs and no more");
        }
        let excess = schema.excess_rights.join(", ");
        Finding::ok(check, format!("our role has what it needs, and more: {excess}"))
    })
}

/// What it is by default, and what our own changes make of it.
fn synchronous_commit(facts: &Postgres) -> Finding {
    let check = Check::PostgresSynchronousCommit;
    facts.server.judged(check, |server| {
        let default = &server.synchronous_commit;
        if let Some(commits) = facts.commits.known()
            && commits.synchronous_commit == "off"
        {
            return Finding::fail(
                check,
                "our own changes commit without waiting for the log: a crash of the database would shorten leases",
                format!("ALTER ROLE {} SET synchronous_commit = on;", server.role),
            );
        }
        match default.as_str() {
            "off" => Finding::fail(
                check,
                "it is off by default. Each change of a lease turns it on for itself, migrations and whatever else \
                 this role does go without",
                format!("ALTER ROLE {} SET synchronous_commit = on;", server.role),
            ),
            "local" if server.has_synchronous_standby => Finding::warn(
                check,
                "it is `local`: commits do not wait for the synchronous standby, which lacks renewals when it is promoted",
                format!("ALTER ROLE {} SET synchronous_commit = on;", server.role),
            ),
            other => Finding::ok(check, format!("it is {other}")),
        }
    })
}

fn fsync(server: &PostgresServer) -> Finding {
    let check = Check::PostgresFsync;
    if server.fsync {
        return Finding::ok(check, "what is committed is on the disk");
    }
    Finding::warn(
        check,
        "fsync is off: a crash of the machine can take away or damage what was committed",
        "turn fsync on in postgresql.conf, unless this database may be lost",
    )
}

fn connections(server: &PostgresServer, settings: &Settings) -> Finding {
    let check = Check::PostgresConnections;
    let each = settings.connections_of_a_replica.max(1);
    let max = server.role_connections_max.unwrap_or(u32::MAX).min(server.connections_max);
    let replicas = max / each;
    let open = server.connections_open;
    let found = format!("room for {replicas} replicas of {each} connections in {max} ({open} are open now)");
    let next =
        "lower `postgres.pool_max`, put a pooler in between, or raise the limit: replicas x (pool_max + 2)";
    if replicas == 0 {
        return Finding::fail(check, found, next);
    }
    if replicas == 1 {
        return Finding::warn(check, format!("{found}: a rolling upgrade needs two"), next);
    }
    if server.connections_max.saturating_sub(open) < each {
        return Finding::warn(check, format!("{found}: another replica would find too few"), next);
    }
    Finding::ok(check, found)
}

fn round_trip(trips: &[PostgresRoundTrip]) -> Finding {
    let check = Check::PostgresRoundTrip;
    let Some(spread) = Spread::of(trips.iter().map(|trip| trip.took)) else {
        return Finding::skipped(check, "none was made");
    };
    if spread.median < ROUND_TRIP_LONG {
        return Finding::ok(check, spread.shown());
    }
    Finding::warn(
        check,
        spread.shown(),
        "run the replicas near their database: opening a tenant takes two to four of these",
    )
}

fn clock(trips: &[PostgresRoundTrip]) -> Finding {
    let check = Check::PostgresClock;
    let Some(clock) = clock_of(trips) else { return Finding::skipped(check, "it was not read") };
    let (way, by) = if clock.ahead_micros < 0 { ("behind", "slow") } else { ("ahead of", "fast") };
    let found = format!(
        "the server's clock is {} {way} ours, to within {}",
        shown(std::time::Duration::from_micros(clock.ahead_micros.unsigned_abs())),
        shown(clock.error)
    );
    let is_apart = clock.ahead_micros.abs() > AHEAD_MICROS_MAX.saturating_add(micros(clock.error));
    if !clock.moved.is_zero() {
        return Finding::warn(
            check,
            format!("{found}, and one of the two moved by {} meanwhile", shown(clock.moved)),
            "let both machines keep time (NTP): leases are counted by both clocks' speed",
        );
    }
    if is_apart {
        return Finding::warn(
            check,
            format!("{found}. No lease rests on that, but the times in events and receipts do"),
            format!(
                "let both machines keep time (NTP); the server's clock is {by}, or ours is the other way"
            ),
        );
    }
    Finding::ok(check, found)
}

fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_lease::PostgresCommits;

    use super::*;
    use crate::doctor::{
        fact::Fact,
        finding::Verdict,
        judge::samples::{
            MILLI, about, assert_says, failed, postgres, schema as good_schema, server, settings,
        },
    };

    /// What is said about `check` once `spoil` was at it.
    fn finding(check: Check, spoil: impl FnOnce(&mut Postgres)) -> Finding {
        let mut facts = postgres();
        spoil(&mut facts);
        about(&judge(&facts, &settings()), check).clone()
    }

    fn of_server(check: Check, spoil: impl FnOnce(&mut PostgresServer)) -> Finding {
        let mut spoilt = server();
        spoil(&mut spoilt);
        finding(check, |facts| facts.server = Fact::Known(spoilt))
    }

    fn of_schema(check: Check, spoil: impl FnOnce(&mut PostgresSchema)) -> Finding {
        let mut spoilt = good_schema();
        spoil(&mut spoilt);
        finding(check, |facts| facts.schema = Fact::Known(spoilt))
    }

    #[test]
    fn who_is_not_let_in_is_told_why() {
        let reached = finding(Check::PostgresReach, |_| {});
        assert_says(&reached, Verdict::Ok, "db:5432/main lets us in as leasehold_app");
        assert_says(
            &finding(Check::PostgresReach, |facts| facts.reach = failed()),
            Verdict::Fail,
            "it burns",
        );
        let unasked = finding(Check::PostgresTls, |facts| facts.tls = Fact::after(Check::PostgresReach));
        assert_says(&unasked, Verdict::Skipped, "postgres.reach failed");
    }

    #[test]
    fn tls_is_good_where_the_certificate_is_looked_at() {
        for (mode, is_used, is_local, verdict, part) in [
            (TlsMode::VerifyFull, true, false, Verdict::Ok, "verify-full"),
            (TlsMode::VerifyCa, true, false, Verdict::Ok, "verify-ca"),
            (TlsMode::Require, true, false, Verdict::Warn, "sslmode=verify-full"),
            (TlsMode::Prefer, true, false, Verdict::Warn, "pass for the database"),
            (TlsMode::Prefer, false, false, Verdict::Warn, "no TLS"),
            (TlsMode::Disable, false, false, Verdict::Warn, "no TLS"),
            (TlsMode::Disable, false, true, Verdict::Ok, "never leaves"),
        ] {
            let tls = PostgresTls { mode, is_used, is_local };
            assert_says(&finding(Check::PostgresTls, |facts| facts.tls = Fact::Known(tls)), verdict, part);
        }
    }

    #[test]
    fn a_server_has_to_be_new_enough_and_to_write() {
        let check = Check::PostgresVersion;
        assert_says(&of_server(check, |server| server.version_number = 120_000), Verdict::Ok, "15.14");
        assert_says(
            &of_server(check, |server| server.version_number = 110_022),
            Verdict::Fail,
            "12 or newer",
        );
        let check = Check::PostgresWritable;
        assert_says(&of_server(check, |server| server.is_standby = true), Verdict::Fail, "primary");
        let reads = of_server(check, |server| server.is_read_only = true);
        assert_says(
            &reads,
            Verdict::Fail,
            "ALTER ROLE leasehold_app SET default_transaction_read_only = off;",
        );
    }

    #[test]
    fn a_schema_has_to_be_there_in_our_version() {
        let check = Check::PostgresSchema;
        for (is_there, version, may_migrate, verdict, part) in [
            (true, Some(1), false, Verdict::Ok, "leasehold at version 1"),
            (true, Some(2), false, Verdict::Fail, "use a newer build"),
            (true, Some(0), true, Verdict::Fail, "run `leasehold migrate`"),
            (true, Some(0), false, Verdict::Fail, "as the role that owns the schema"),
            (true, None, false, Verdict::Fail, "postgres.rights"),
            (false, Some(0), true, Verdict::Fail, "run `leasehold migrate`"),
            (false, Some(0), false, Verdict::Fail, "CREATE SCHEMA leasehold AUTHORIZATION"),
        ] {
            let found = of_schema(check, |schema| {
                (schema.is_there, schema.version, schema.may_migrate) = (is_there, version, may_migrate);
            });
            assert_says(&found, verdict, part);
        }
        let older = of_schema(check, |schema| schema.version_needed = 3);
        assert_says(&older, Verdict::Fail, "at version 1, this build needs 3");
    }

    #[test]
    fn rights_are_what_is_needed() {
        let check = Check::PostgresRights;
        let grant = "GRANT UPDATE ON leasehold.lease TO leasehold_app;";
        let lacking = of_schema(check, |schema| schema.missing_grants = vec![grant.into()]);
        assert_says(&lacking, Verdict::Fail, grant);
        let more = of_schema(check, |schema| schema.excess_rights = vec!["DELETE on lease".into()]);
        assert_says(&more, Verdict::Ok, "and more: DELETE on lease");
        assert_says(&of_schema(check, |schema| schema.version = Some(0)), Verdict::Skipped, "no tables");
        assert_says(&of_schema(check, |schema| schema.is_there = false), Verdict::Skipped, "no tables");
        assert_says(&of_server(check, |server| server.is_superuser = true), Verdict::Warn, "superuser");
    }

    #[test]
    fn commits_have_to_wait_for_the_log() {
        let check = Check::PostgresSynchronousCommit;
        let set = |text: &str, standby: bool| {
            of_server(check, |server| {
                server.synchronous_commit = text.into();
                server.has_synchronous_standby = standby;
            })
        };
        for text in ["on", "remote_apply", "remote_write"] {
            assert_says(&set(text, true), Verdict::Ok, text);
        }
        assert_says(&set("local", false), Verdict::Ok, "local");
        assert_says(&set("local", true), Verdict::Warn, "standby");
        let off = set("off", false);
        assert_says(&off, Verdict::Fail, "ALTER ROLE leasehold_app SET synchronous_commit = on;");
        let ours = PostgresCommits { took: vec![MILLI], synchronous_commit: "off".into() };
        let own = finding(check, |facts| facts.commits = Fact::Known(ours));
        assert_says(&own, Verdict::Fail, "our own changes");
        assert_says(&of_server(Check::PostgresFsync, |server| server.fsync = false), Verdict::Warn, "fsync");
    }

    #[test]
    fn there_has_to_be_room_for_connections() {
        let check = Check::PostgresConnections;
        for (max, role_max, open, verdict, part) in [
            (97, None, 5, Verdict::Ok, "room for 9 replicas of 10 connections in 97 (5 are open now)"),
            (97, Some(25), 5, Verdict::Ok, "room for 2 replicas"),
            (97, Some(15), 5, Verdict::Warn, "a rolling upgrade needs two"),
            (97, None, 90, Verdict::Warn, "another replica would find too few"),
            (9, None, 1, Verdict::Fail, "postgres.pool_max"),
        ] {
            let found = of_server(check, |server| {
                (server.connections_max, server.role_connections_max) = (max, role_max);
                server.connections_open = open;
            });
            assert_says(&found, verdict, part);
        }
    }

    #[test]
    fn distances_and_clocks_are_told() {
        let trips = |took: Duration, ahead_micros: i64| {
            move |facts: &mut Postgres| {
                facts.round_trips = Fact::Known(vec![PostgresRoundTrip { took, ahead_micros }; 3]);
            }
        };
        let check = Check::PostgresRoundTrip;
        assert_says(&finding(check, trips(MILLI, 0)), Verdict::Ok, "median 1.0 ms, longest 1.0 ms of 3");
        assert_says(&finding(check, trips(60 * MILLI, 0)), Verdict::Warn, "near their database");
        let check = Check::PostgresClock;
        assert_says(&finding(check, trips(MILLI, 900_000)), Verdict::Ok, "900.0 ms ahead of ours");
        assert_says(&finding(check, trips(MILLI, -2_000_000)), Verdict::Warn, "2.0 s behind ours");
        let moved = finding(check, |facts| {
            let trip = |ahead_micros| PostgresRoundTrip { took: MILLI, ahead_micros };
            facts.round_trips = Fact::Known(vec![trip(0), trip(500_000)]);
        });
        assert_says(&moved, Verdict::Warn, "moved by");
        assert_says(&finding(Check::PostgresCommit, |_| {}), Verdict::Ok, "longest 3.0 ms of 5");
        let pooled = finding(Check::PostgresPooler, |facts| {
            facts.pooling = Fact::Known(PostgresPooling::ByTransaction);
        });
        assert_says(&pooled, Verdict::Ok, "a pooler");
        let unseen = finding(Check::PostgresPooler, |facts| facts.pooling = failed());
        assert_says(&unseen, Verdict::Warn, "it burns");
    }
}
