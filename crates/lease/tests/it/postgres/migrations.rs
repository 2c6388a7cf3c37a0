//! The tables: how they come to be, and that they are what is written down.

use futures::future::join_all;
use leasehold_lease::{LeaseError, PostgresLeaseStore};

use super::server::{Schema, Way};

const SCHEMA_SQL: &str = include_str!("../../../../../sql/schema.sql");

/// Everything that the catalogue knows of a schema's tables but the history, a line each, without the schema's name.
async fn described(schema: &Schema) -> Vec<String> {
    let sql = "
        SELECT format('%s.%s %s %s %s default %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                      CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END,
                      coalesce((SELECT collname FROM pg_collation WHERE oid = a.attcollation), '-'),
                      coalesce(pg_get_expr(d.adbin, d.adrelid), '-')) || ' at ' || a.attnum
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
         WHERE c.relnamespace = '@'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_history'
         UNION ALL
        SELECT format('%s: %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
         WHERE connamespace = '@'::regnamespace AND conrelid::regclass::text NOT LIKE '%schema_history'
         UNION ALL
        SELECT indexdef FROM pg_indexes WHERE schemaname = '@' AND tablename <> 'schema_history'
         UNION ALL
        SELECT format('%s %s %s %s', relname, relkind, relpersistence, reloptions) FROM pg_class
         WHERE relnamespace = '@'::regnamespace AND relname NOT LIKE 'schema_history%'
         UNION ALL
        SELECT format('trigger %s', tgname) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
         WHERE c.relnamespace = '@'::regnamespace";
    let rows = schema.admin.query(&sql.replace('@', schema.name()), &[]).await.unwrap();
    let name = format!("{}.", schema.name());
    let mut lines: Vec<String> = rows.iter().map(|row| row.get::<_, String>(0).replace(&name, "")).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn the_written_schema_is_the_sum_of_the_migrations() {
    let (migrated, written) = (Schema::made(Way::Direct).await, Schema::unmade(Way::Direct).await);
    written.run("CREATE SCHEMA @; SET search_path TO @").await;
    written.admin.batch_execute(SCHEMA_SQL).await.unwrap();
    let described_twice = (described(&migrated).await, described(&written).await);
    assert!(described_twice.0.len() > 30, "{described_twice:?}");
    assert_eq!(described_twice.0, described_twice.1);
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let schema = Schema::unmade(Way::Direct).await;
    let migration = PostgresLeaseStore::migrate(&schema.options).await.unwrap();
    assert_eq!(
        (migration.from, migration.to, migration.applied),
        (0, 3, ["V1__lease", "V2__pause", "V3__token"].map(str::to_owned).to_vec())
    );
    let history = "SELECT string_agg(h::text, ',') FROM @.schema_history h".replace('@', schema.name());
    let history = || async { schema.admin.query_one(&history, &[]).await.unwrap().get::<_, String>(0) };
    let (before, tables) = (history().await, described(&schema).await);
    let migration = PostgresLeaseStore::migrate(&schema.options).await.unwrap();
    assert_eq!((migration.from, migration.to, migration.applied), (3, 3, vec![]));
    assert_eq!((history().await, described(&schema).await), (before, tables));
}

#[tokio::test]
async fn a_rehearsal_finds_what_is_to_do_and_leaves_nothing() {
    let schema = Schema::unmade(Way::Direct).await;
    for _ in 0..2 {
        let migration = PostgresLeaseStore::rehearse_migration(&schema.options).await.unwrap();
        assert_eq!((migration.from, migration.to, migration.applied.len()), (0, 3, 3));
        let is_there = "SELECT count(*) FROM pg_namespace WHERE nspname = '@'";
        assert_eq!(schema.number(is_there).await, 0);
    }
    PostgresLeaseStore::migrate(&schema.options).await.unwrap();
    let migration = PostgresLeaseStore::rehearse_migration(&schema.options).await.unwrap();
    assert_eq!((migration.from, migration.to, migration.applied.len()), (3, 3, 0));
}

async fn race(way: Way) {
    let schema = Schema::unmade(way).await;
    let racers = (0..8).map(|_| {
        let options = schema.options.clone();
        tokio::spawn(async move { PostgresLeaseStore::migrate(&options).await })
    });
    let applied = join_all(racers).await.into_iter().map(|racer| racer.unwrap().unwrap());
    assert_eq!(
        applied.filter(|migration| !migration.applied.is_empty()).count(),
        1,
        "one of them made the tables"
    );
    schema.store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_at_once_migrate_once() {
    race(Way::Direct).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_behind_a_pooler_migrate_once() {
    race(Way::Pooled).await;
}

#[tokio::test]
async fn tables_that_are_missing_or_too_new_are_told() {
    let schema = Schema::unmade(Way::Direct).await;
    let open = || PostgresLeaseStore::connect(schema.options.clone());
    for prepared in ["", "CREATE SCHEMA @"] {
        schema.run(prepared).await;
        let error = open().await.unwrap_err();
        assert!(matches!(&error, LeaseError::Unmigrated { found: 0, needed: 3, .. }), "{error:?}");
        assert!(error.to_string().contains(schema.name()) && error.to_string().contains("leasehold migrate"));
    }
    PostgresLeaseStore::migrate(&schema.options).await.unwrap();
    schema.run("INSERT INTO @.schema_history VALUES (4, 'later', '2026-01-01T00:00:00Z', '7')").await;
    for error in [open().await.unwrap_err(), PostgresLeaseStore::migrate(&schema.options).await.unwrap_err()]
    {
        assert!(matches!(error, LeaseError::FormatTooNew { found: 4, known: 3 }), "{error:?}");
    }
}

#[tokio::test]
async fn a_history_that_is_not_ours_is_refused() {
    let schema = Schema::made(Way::Direct).await;
    schema.run("UPDATE @.schema_history SET checksum = '7'").await;
    let error = PostgresLeaseStore::migrate(&schema.options).await.unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_configuration");
    assert!(error.to_string().contains("V1__lease"), "{error}");
}

#[tokio::test]
async fn a_step_that_fails_leaves_nothing_behind() {
    let schema = Schema::unmade(Way::Direct).await;
    schema.run("CREATE SCHEMA @; CREATE TABLE @.settings (ours int)").await;
    PostgresLeaseStore::migrate(&schema.options).await.unwrap_err();
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = '@'";
    assert_eq!(schema.number(tables).await, 1);
    schema.run("DROP TABLE @.settings").await;
    assert_eq!(PostgresLeaseStore::migrate(&schema.options).await.unwrap().applied.len(), 3);
}

#[tokio::test]
async fn a_row_that_breaks_the_rules_cannot_be_stored() {
    let schema = Schema::made(Way::Direct).await;
    let tenure = "'00000000-0000-0000-0000-000000000001'";
    for values in [
        "('acme/t', 0, NULL, NULL, NULL, 0, NULL, NULL, NULL)".into(),
        "('acme/t', 1, 'a', NULL, NULL, 0, NULL, NULL, NULL)".into(),
        format!("('acme/t', 1, 'a', {tenure}, NULL, 0, NULL, NULL, NULL)"),
        format!("('acme/t', 1, NULL, {tenure}, now(), 0, NULL, NULL, NULL)"),
        "('acme/t', 1, NULL, NULL, NULL, 2, now(), NULL, NULL)".into(),
        "('acme/t', 1, NULL, NULL, NULL, -1, now(), NULL, NULL)".into(),
        "('acme/t', 1, NULL, NULL, NULL, 1, NULL, NULL, NULL)".into(),
        "('acme/t', 1, NULL, NULL, NULL, 0, NULL, now(), NULL)".into(),
        "('acme/t', 1, NULL, NULL, NULL, 0, NULL, NULL, '{}')".into(),
    ] {
        let sql = format!("INSERT INTO {}.lease VALUES {values}", schema.name());
        let error = schema.admin.batch_execute(&sql).await.unwrap_err();
        let code = error.code().unwrap();
        assert_eq!(*code, tokio_postgres::error::SqlState::CHECK_VIOLATION, "{values}");
    }
}
