//! A tenant that is as large as it may be, as its callers and its operators meet it.

use std::os::unix::fs::PermissionsExt as _;

use leasehold_testkit::{PATIENCE, eventually};
use serde_json::{Value, json};

use crate::{
    data::{Answer, answer, client},
    ground::{Ground, over_each_pair},
    process::Replica,
};

const KEY: &str = "acme/full";

async fn send(replica: &Replica, method: reqwest::Method, rest: &str, body: Option<Value>) -> Answer {
    let request = client().request(method, replica.url(KEY, rest));
    answer(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

async fn execute(replica: &Replica, sql: &str) -> Answer {
    send(replica, reqwest::Method::POST, "/execute", Some(json!({ "statements": [{ "sql": sql }] }))).await
}

async fn ready(ground: &Ground, replica: &str, environment: &[(&str, &str)]) -> Replica {
    let replica = ground.start_in(replica, environment).await;
    eventually(PATIENCE, "it is ready", async || replica.is_ready().await).await;
    replica
}

async fn a_full_tenant_refuses_to_grow_and_does_all_else(ground: Ground) {
    const INSERT: &str = "insert into t values (zeroblob(100000))";
    let a = ready(&ground, "a", &[("LEASEHOLD_LIMITS__LEDGER_BYTES_MAX", "4194304")]).await;
    execute(&a, "create table t (x)").await.assert(200);
    for _ in 0..20 {
        execute(&a, INSERT).await.assert(200);
    }
    a.write(KEY, "one").await;
    assert_eq!(a.stop().await.code, Some(0));

    // Above a bound that was lowered meanwhile: restored, served, and full.
    let a = ready(&ground, "a", &[("LEASEHOLD_LIMITS__LEDGER_BYTES_MAX", "1048576")]).await;
    assert_eq!(a.names(KEY).await, ["one"]);
    let refused = execute(&a, INSERT).await.assert(413);
    assert_eq!((refused.code(), &refused.body["executed"]), ("tenant_full", &json!("no")));
    let large = "x".repeat(200_000);
    assert_eq!(a.append(KEY, &large).await.assert(413).code(), "tenant_full");
    let post = reqwest::Method::POST;
    let count = json!({ "sql": "select count(*) from t" });
    let counted = send(&a, post.clone(), "/query", Some(count)).await.assert(200);
    assert_eq!(counted.body["rows"], json!([[20]]));
    let exported = client().get(a.url(KEY, "/export")).send().await.unwrap();
    assert_eq!(exported.status(), 200);
    let file = exported.bytes().await.unwrap();
    assert!(file.len() > 1_048_576);
    // What does not fit is not taken.
    let import =
        client().put(a.url("acme/copy", "/import")).header("content-type", "application/vnd.sqlite3");
    assert_eq!(answer(import.body(file)).await.assert(413).code(), "tenant_full");

    execute(&a, "delete from t where rowid <= 3").await.assert(200);
    execute(&a, INSERT).await.assert(200);
    send(&a, post.clone(), "/snapshot", None).await.assert(200);
    send(&a, post, "/handoff", None).await.assert(200);
    assert_eq!(a.names(KEY).await, ["one"]);
    send(&a, reqwest::Method::DELETE, "", None).await.assert(200);
    assert_eq!(a.events(KEY).await.assert(410).code(), "tenant_forgotten");
    assert_eq!(a.stop().await.code, Some(0));
}

/// Whatever the umask and whoever made the data directory.
async fn what_a_replica_keeps_is_its_users_alone(ground: Ground) {
    let dir = ground.data_dir("a").join("made");
    let mut arguments = ground.serve("a");
    let at = arguments.iter().position(|argument| argument == "--data-dir").unwrap();
    dir.to_str().unwrap().clone_into(&mut arguments[at + 1]);
    let mut command = crate::process::command_under("umask 000");
    command.args(arguments);
    let a = Replica::spawn_by(command).await;
    eventually(PATIENCE, "it is ready", async || a.is_ready().await).await;
    a.write(KEY, "one").await;
    let mut open = Vec::new();
    for path in [dir.clone(), dir.join("nodes"), dir.join("store")] {
        let Ok(found) = std::fs::metadata(&path) else { continue };
        if found.permissions().mode() & 0o077 != 0 {
            open.push(path);
        }
    }
    assert!(open.is_empty() && dir.join("nodes").is_dir(), "others may look into {open:?}");
    assert_eq!(a.stop().await.code, Some(0));
}

over_each_pair!(a_full_tenant_refuses_to_grow_and_does_all_else, what_a_replica_keeps_is_its_users_alone);
