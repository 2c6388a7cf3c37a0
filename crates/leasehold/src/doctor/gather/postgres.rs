//! The database's facts.

use leasehold_lease::{PostgresInspector, PostgresOptions};
use leasehold_server::Edges;

use super::asking::Asking;
use crate::doctor::{check::Check, fact::Fact, facts::Postgres};

const ROUND_TRIPS: usize = 20;
const COMMITS: usize = 5;

/// The database's facts, and the fingerprint that it was bound to.
pub(super) async fn gather(
    asking: &Asking,
    edges: &Edges,
    mut options: PostgresOptions,
) -> (Postgres, Fact<Option<String>>) {
    options.connect_limit = options.connect_limit.min(asking.limit_within());
    options.statement_limit = options.statement_limit.min(asking.limit_within());
    options.application_name = "leasehold doctor".into();
    let place = options.place();
    let connected = asking.fact("connect to the database", PostgresInspector::connect(&options)).await;
    let mut inspector = match connected {
        Fact::Known(inspector) => inspector,
        Fact::Failed(failure) => return unreached(place, Fact::Failed(failure)),
        Fact::Unasked(because) => return unreached(place, Fact::Unasked(because)),
    };
    let clock = edges.clock.as_ref();
    let server = asking.fact("ask for the server's settings", inspector.server()).await;
    let tls = asking.fact("see whether TLS is spoken", inspector.tls()).await;
    let schema = asking.fact("look at the schema", inspector.schema()).await;
    let pooling = asking.fact("look for a pooler", inspector.pooling()).await;
    let round_trips = asking.fact("measure round trips", inspector.round_trips(clock, ROUND_TRIPS)).await;
    let may_read = schema.known().is_some_and(|schema| schema.version.is_some_and(|version| version > 0));
    let is_granted = schema.known().is_some_and(|schema| schema.missing_grants.is_empty());
    let writes = server.known().is_some_and(|server| !server.is_standby && !server.is_read_only);
    let commits = if !writes {
        Fact::after(Check::PostgresWritable)
    } else if !may_read {
        Fact::after(Check::PostgresSchema)
    } else if !is_granted {
        Fact::after(Check::PostgresRights)
    } else {
        asking.fact("measure commits", inspector.commits(clock, COMMITS, edges.entropy.uuid())).await
    };
    let bound_to = if may_read {
        asking.fact("read the derivation key's fingerprint", inspector.derivation_fingerprint()).await
    } else {
        Fact::after(Check::PostgresSchema)
    };
    let reach = Fact::Known(());
    (Postgres { place, reach, server, tls, schema, pooling, round_trips, commits }, bound_to)
}

fn unreached(place: String, reach: Fact<()>) -> (Postgres, Fact<Option<String>>) {
    let facts = Postgres {
        place,
        reach,
        server: Fact::after(Check::PostgresReach),
        tls: Fact::after(Check::PostgresReach),
        schema: Fact::after(Check::PostgresReach),
        pooling: Fact::after(Check::PostgresReach),
        round_trips: Fact::after(Check::PostgresReach),
        commits: Fact::after(Check::PostgresReach),
    };
    (facts, Fact::after(Check::PostgresReach))
}
