//! The statements. Names are qualified and each change is one conditional statement, so that nothing rests on the state of a session.

/// How each change begins. It sets, for its own transaction only, how long it waits for a row (`$1`), and where the database would commit
/// without waiting for its log, makes this commit wait: a crash must not shorten a lease that its holder counts on. Being joined to what is
/// changed, it is evaluated before the first row is locked.
pub(super) const LIMITS: &str = "WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', $1, true),
           CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END)";

/// The condition of a claim: owner, tenure and epoch are its own. Key, owner, tenure, epoch are `$2` to `$5`.
const IS_CLAIMED: &str = "l.lease_key = $2 AND l.owner = $3 AND l.tenure_id = $4 AND l.epoch = $5";

const ROW: &str = "SELECT l.lease_key, l.epoch, l.owner, l.tenure_id,
       (extract(epoch FROM l.expires_at - statement_timestamp()) * 1000000)::bigint AS remaining_us,
       l.forget_floor, (extract(epoch FROM l.forgotten_at) * 1000)::bigint AS forgotten_ms, l.receipt,
       (extract(epoch FROM l.paused_at) * 1000)::bigint AS paused_ms, r.endpoint";

/// A text that is run on a store's connections. There is none beside those of [`Statements`].
#[derive(Debug)]
pub(super) struct Statement(String);

impl Statement {
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

/// The texts for one schema.
///
/// A statement's present is the moment at which it began. One that waited for a row finds it as it is after the wait, and a later renewal
/// may have passed it: so what is held is never made to end earlier than the row says (`greatest`), since its holder counts on that.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) acquire: Statement,
    pub(super) insert: Statement,
    pub(super) pause: Statement,
    pub(super) resume: Statement,
    pub(super) renew: Statement,
    pub(super) release: Statement,
    pub(super) raise_floor: Statement,
    pub(super) store_receipt: Statement,
    pub(super) advance_epoch: Statement,
    pub(super) read: Statement,
    pub(super) list: Statement,
    pub(super) due_rechecks: Statement,
    pub(super) schedule_recheck: Statement,
    pub(super) announce: Statement,
    pub(super) introduce: Statement,
    pub(super) heard_of: Statement,
    pub(super) retire: Statement,
    pub(super) replicas: Statement,
    pub(super) setting: Statement,
    pub(super) keep_setting: Statement,
    pub(super) drop_ended_tokens: Statement,
    pub(super) add_token: Statement,
    pub(super) tokens: Statement,
    pub(super) revoke_token: Statement,
    pub(super) has_history: Statement,
    pub(super) version: Statement,
}

impl Statements {
    /// `schema` is one that the options accept.
    #[expect(clippy::too_many_lines, reason = "one text after the other")]
    pub(super) fn new(schema: &str) -> Self {
        let (lease, replica) = (format!("\"{schema}\".lease"), format!("\"{schema}\".replica"));
        let (settings, token) = (format!("\"{schema}\".settings"), format!("\"{schema}\".token"));
        let row = format!("{ROW} FROM {lease} AS l LEFT JOIN {replica} AS r ON r.replica_id = l.owner");
        Self {
            acquire: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l
                    SET epoch = CASE WHEN l.owner = $3 AND l.tenure_id = $4 THEN l.epoch ELSE l.epoch + 1 END,
                        owner = $3, tenure_id = $4,
                        expires_at = CASE WHEN l.owner = $3 AND l.tenure_id = $4
                                          THEN greatest(l.expires_at, statement_timestamp() + $5 * interval '1 microsecond')
                                          ELSE statement_timestamp() + $5 * interval '1 microsecond' END
                   FROM limits
                  WHERE l.lease_key = $2
                    AND ((l.owner = $3 AND l.tenure_id = $4)
                         OR ((l.owner IS NULL OR l.expires_at <= statement_timestamp()) AND l.epoch < $6
                             AND (l.paused_at IS NULL OR $7)))
              RETURNING l.epoch, l.forget_floor"
            )),
            insert: Statement(format!(
                "{LIMITS}
                 INSERT INTO {lease} (lease_key, epoch, owner, tenure_id, expires_at)
                 SELECT $2, 1, $3, $4, statement_timestamp() + $5 * interval '1 microsecond' FROM limits
            ON CONFLICT (lease_key) DO NOTHING
              RETURNING epoch, forget_floor"
            )),
            pause: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l SET paused_at = statement_timestamp()
                   FROM limits WHERE l.lease_key = $2 AND l.paused_at IS NULL RETURNING 1"
            )),
            resume: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l SET paused_at = NULL
                   FROM limits WHERE l.lease_key = $2 AND l.paused_at IS NOT NULL RETURNING 1"
            )),
            renew: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l
                    SET expires_at = greatest(l.expires_at, statement_timestamp() + $6 * interval '1 microsecond')
                   FROM limits, unnest($2, $3, $4, $5) WITH ORDINALITY
                        AS claim (lease_key, owner, tenure_id, epoch, place)
                  WHERE l.lease_key = claim.lease_key AND l.owner = claim.owner
                    AND l.tenure_id = claim.tenure_id AND l.epoch = claim.epoch
              RETURNING claim.place"
            )),
            release: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l SET owner = NULL, tenure_id = NULL, expires_at = NULL
                   FROM limits WHERE {IS_CLAIMED} RETURNING 1"
            )),
            raise_floor: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l
                    SET forget_floor = greatest(l.forget_floor, $5), forgotten_at = statement_timestamp(),
                        recheck_at = statement_timestamp() + $6 * interval '1 microsecond', receipt = NULL,
                        paused_at = NULL
                   FROM limits WHERE {IS_CLAIMED} RETURNING l.forget_floor"
            )),
            store_receipt: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l SET receipt = $6
                   FROM limits WHERE {IS_CLAIMED} AND l.forget_floor = $5 RETURNING 1"
            )),
            advance_epoch: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l SET epoch = greatest(l.epoch, $6) + 1
                   FROM limits WHERE {IS_CLAIMED} AND greatest(l.epoch, $6) < $7 RETURNING l.epoch"
            )),
            read: Statement(format!("{row} WHERE l.lease_key = $1")),
            list: Statement(format!("{row} WHERE l.lease_key > $1 AND l.lease_key < $2 ORDER BY l.lease_key LIMIT $3")),
            due_rechecks: Statement(format!(
                "SELECT lease_key, forget_floor, (extract(epoch FROM forgotten_at) * 1000)::bigint,
                        (extract(epoch FROM recheck_at) * 1000)::bigint
                   FROM {lease}
                  WHERE recheck_at IS NOT NULL AND recheck_at <= statement_timestamp()
               ORDER BY recheck_at, lease_key LIMIT $1"
            )),
            schedule_recheck: Statement(format!(
                "{LIMITS}
                 UPDATE {lease} AS l
                    SET recheck_at = statement_timestamp() + $5 * interval '1 microsecond'
                   FROM limits
                  WHERE l.lease_key = $2 AND l.forget_floor = $3
                    AND (extract(epoch FROM l.recheck_at) * 1000)::bigint = $4
              RETURNING 1"
            )),
            announce: Statement(format!(
                "{LIMITS}
                 UPDATE {replica} AS r
                    SET instance = $3, endpoint = $4, draining = $5, open_tenants = $6, seen_at = statement_timestamp()
                   FROM limits
                  WHERE r.replica_id = $2
                    AND (r.instance = $3 OR $7
                         OR r.seen_at <= statement_timestamp() - $8 * interval '1 microsecond')
              RETURNING 1"
            )),
            introduce: Statement(format!(
                "{LIMITS}
                 INSERT INTO {replica} (replica_id, instance, endpoint, draining, open_tenants, seen_at)
                 SELECT $2, $3, $4, $5, $6, statement_timestamp() FROM limits
            ON CONFLICT (replica_id) DO NOTHING
              RETURNING 1"
            )),
            heard_of: Statement(format!(
                "SELECT endpoint, (extract(epoch FROM statement_timestamp() - seen_at) * 1000000)::bigint
                   FROM {replica} WHERE replica_id = $1"
            )),
            retire: Statement(format!(
                "{LIMITS}
                 DELETE FROM {replica} AS r USING limits WHERE r.replica_id = $2 AND r.instance = $3"
            )),
            replicas: Statement(format!(
                "SELECT replica_id, instance, endpoint, draining, open_tenants,
                        (extract(epoch FROM statement_timestamp() - seen_at) * 1000000)::bigint
                   FROM {replica} ORDER BY replica_id LIMIT $1"
            )),
            setting: Statement(format!("SELECT value FROM {settings} WHERE name = $1")),
            keep_setting: Statement(format!(
                "{LIMITS}
                 INSERT INTO {settings} (name, value) SELECT $2, $3 FROM limits ON CONFLICT (name) DO NOTHING"
            )),
            drop_ended_tokens: Statement(format!(
                "{LIMITS}
                 DELETE FROM {token} AS t USING limits WHERE t.expires_at <= statement_timestamp()"
            )),
            add_token: Statement(format!(
                "{LIMITS}
                 INSERT INTO {token} (name, slot, token_id, hash, organizations, scopes, created_at, expires_at)
                 SELECT $2, free.slot, $3, $4, $5, $6, statement_timestamp(),
                        statement_timestamp() + $7 * interval '1 microsecond'
                   FROM limits,
                        (SELECT s.slot FROM (VALUES (1::smallint), (2::smallint)) AS s (slot)
                          WHERE NOT EXISTS (SELECT FROM {token} AS t WHERE t.name = $2 AND t.slot = s.slot)
                       ORDER BY s.slot LIMIT 1) AS free
                  WHERE NOT EXISTS (SELECT FROM {token} AS t WHERE t.token_id = $3)
                    AND (SELECT count(*) FROM {token}) < $8
            ON CONFLICT DO NOTHING
              RETURNING (extract(epoch FROM expires_at) * 1000)::bigint"
            )),
            tokens: Statement(format!(
                "SELECT token_id, name, hash, organizations, scopes, (extract(epoch FROM created_at) * 1000)::bigint,
                        (extract(epoch FROM expires_at) * 1000)::bigint
                   FROM {token} WHERE expires_at > statement_timestamp() ORDER BY name, slot LIMIT $1"
            )),
            revoke_token: Statement(format!(
                "{LIMITS}
                 DELETE FROM {token} AS t USING limits WHERE t.token_id = $2 RETURNING 1"
            )),
            // Asked of the catalogue, which everybody may read: a missing table and a missing grant are told apart.
            has_history: Statement("SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                                          WHERE n.nspname = $1 AND c.relname = 'schema_history')"
                .to_owned()),
            version: Statement(format!("SELECT coalesce(max(version), 0) FROM \"{schema}\".schema_history")),
        }
    }

    /// All of them by their names. One that is missing here does not compile.
    pub(super) fn all(&self) -> Vec<(&'static str, &str)> {
        macro_rules! all {
            ($($name:ident),*) => {{
                let Self { $($name),* } = self;
                vec![$((stringify!($name), $name.text())),*]
            }};
        }
        all![
            acquire,
            insert,
            pause,
            resume,
            renew,
            release,
            raise_floor,
            store_receipt,
            advance_epoch,
            read,
            list,
            due_rechecks,
            schedule_recheck,
            announce,
            introduce,
            heard_of,
            retire,
            replicas,
            setting,
            keep_setting,
            drop_ended_tokens,
            add_token,
            tokens,
            revoke_token,
            has_history,
            version
        ]
    }
}
