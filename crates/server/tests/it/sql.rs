//! A tenant's own tables, and what its SQL may not do.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Answered, Served, path_of};

const TENANT: &str = "acme/user-1";

async fn execute(served: &Served, sql: &str) -> Answered {
    let body = json!({ "statements": [{ "sql": sql }] });
    served.post_json(&format!("{}/execute", path_of(TENANT)), &body).await
}

async fn query(served: &Served, sql: &str, params: Value) -> Answered {
    let body = json!({ "sql": sql, "params": params });
    served.post_json(&format!("{}/query", path_of(TENANT)), &body).await
}

#[tokio::test]
async fn statements_are_one_transaction() {
    let served = Served::alone().await;
    let path = format!("{}/execute", path_of(TENANT));
    let body = json!({ "statements": [
        { "sql": "create table notes (id integer primary key, text text not null, raw blob)" },
        { "sql": "insert into notes (text, raw) values (?, ?) returning id", "params": ["hello", { "base64": "AP8=" }] },
    ]});
    let done = served.post_json(&path, &body).await.ok(200);
    assert_eq!(done["results"][1]["rows"], json!([[1]]));
    assert_eq!(done["results"][1]["rows_affected"], 1);
    let bad = json!({ "statements": [
        { "sql": "insert into notes (text) values ('kept?')" },
        { "sql": "insert into notes (text) values (null)" },
    ]});
    served.post_json(&path, &bad).await.problem(400, "sql_error");
    let rows = query(&served, "select id, text, raw from notes where id < ?", json!([10])).await.ok(200);
    assert_eq!(
        rows,
        json!({ "columns": ["id", "text", "raw"], "rows": [[1, "hello", { "base64": "AP8=" }]] })
    );
}

#[tokio::test]
async fn an_execute_takes_effect_once_under_its_key() {
    let served = Served::alone().await;
    execute(&served, "create table notes (text text)").await.ok(200);
    let path = format!("{}/execute", path_of(TENANT));
    let insert = async |text: &str| {
        let body = json!({ "statements": [{ "sql": "insert into notes values (?)", "params": [text] }] });
        served.send(served.request(Method::POST, &path).header("Idempotency-Key", "k").json(&body)).await
    };
    assert_eq!(insert("a").await.ok(200)["duplicate"], false);
    assert_eq!(insert("a").await.ok(200)["duplicate"], true);
    insert("b").await.problem(422, "idempotency_mismatch");
    let count = query(&served, "select count(*) from notes", json!([])).await.ok(200);
    assert_eq!(count["rows"], json!([[1]]));
}

#[tokio::test]
async fn sql_stays_in_its_own_tables() {
    let served = Served::alone().await;
    served.append(TENANT, "a").await;
    query(&served, "insert into notes values (1)", json!([])).await.problem(400, "sql_error");
    execute(&served, "create table notes (text text)").await.ok(200);
    query(&served, "insert into notes values ('x')", json!([])).await.problem(400, "read_only");
    let dir = tempfile::tempdir().unwrap();
    let beside = dir.path().join("beside.db");
    for sql in [
        "insert or replace into events (seq, ts, actor, kind, payload) values (1, 1, 'eve', 'x', 'null')",
        "insert into events (seq, ts, actor, kind, subject_id, payload, idem_key, idem_digest, run_id) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        "update events set kind = 'x'",
        "delete from events",
        "drop table events",
        "create trigger t after insert on events begin select 1; end",
        "create index i on events (actor)",
        &format!("attach '{}' as other", beside.display()),
        &format!("vacuum into '{}'", beside.display()),
        "pragma writable_schema = on",
        "pragma journal_mode = delete",
        "commit",
        "select * from leasehold_tenures",
    ] {
        execute(&served, sql).await.problem(403, "sql_forbidden");
    }
    execute(&served, "selec 1").await.problem(400, "sql_error");
    assert!(!beside.exists());
    assert_eq!(served.kinds(TENANT).await, ["a"]);
    served.append(TENANT, "b").await;
}

#[tokio::test]
async fn a_statement_that_never_ends_is_stopped_and_others_are_served() {
    let served =
        Served::alone_with(|config| config.limits.statement_time_max = Duration::from_millis(200)).await;
    served.append(TENANT, "a").await;
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let (stopped, other) =
        tokio::join!(query(&served, endless, json!([])), served.append("acme/user-2", "a"));
    stopped.problem(422, "statement_timeout");
    assert_eq!(other, "1-1");
    execute(&served, endless).await.problem(422, "statement_timeout");
    assert_eq!(served.kinds(TENANT).await, ["a"]);
}

#[tokio::test]
async fn results_past_a_bound_are_refused_whole() {
    let served = Served::alone_with(|config| {
        config.limits.rows_max = 10;
        config.limits.page_events_max = 10;
        config.limits.result_bytes_max = 10_000;
    })
    .await;
    served.append(TENANT, "a").await;
    let count_to =
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) select i from n";
    assert_eq!(query(&served, count_to, json!([10])).await.ok(200)["rows"].as_array().unwrap().len(), 10);
    query(&served, count_to, json!([11])).await.problem(413, "too_large");
    query(&served, "select zeroblob(20000)", json!([])).await.problem(413, "too_large");
}

#[tokio::test]
async fn what_cannot_be_executed_creates_no_tenant() {
    let served = Served::alone().await;
    for (sql, status, code) in [
        ("insert into nowhere values (1)", 400, "sql_error"),
        ("creat table a (b)", 400, "sql_error"),
        ("insert into events (kind) values ('a')", 403, "sql_forbidden"),
    ] {
        execute(&served, sql).await.problem(status, code);
        served.get(&path_of(TENANT)).await.problem(404, "tenant_unknown");
    }
    execute(&served, "create table a (b)").await.ok(200);
    execute(&served, "insert into nowhere values (1)").await.problem(400, "sql_error");
    assert_eq!(served.get(&path_of(TENANT)).await.ok(200)["state"], "open");
}
