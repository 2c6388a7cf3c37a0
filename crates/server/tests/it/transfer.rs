//! A ledger as a file, out and in.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{Method, header};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::served::{Answered, Served, path_of};

const TENANT: &str = "acme/user-1";
const COPY: &str = "acme/copy";

async fn import(served: &Served, tenant: &str, file: Vec<u8>) -> Answered {
    let request = served
        .request(Method::PUT, &format!("{}/import", path_of(tenant)))
        .header(header::CONTENT_TYPE, "application/vnd.sqlite3")
        .body(file);
    served.send(request).await
}

async fn execute(served: &Served, sql: &[&str]) {
    let statements: Vec<_> = sql.iter().map(|sql| json!({ "sql": sql })).collect();
    let path = format!("{}/execute", path_of(TENANT));
    served.post_json(&path, &json!({ "statements": statements })).await.ok(200);
}

#[tokio::test]
async fn an_export_is_imported_as_it_was() {
    let served = Served::alone().await;
    let events = format!("{}/events", path_of(TENANT));
    for number in 0..600 {
        let event =
            json!({ "kind": "n", "actor": "ada", "payload": number, "idem_key": format!("k-{number}") });
        served.post_json(&events, &event).await.ok(201);
    }
    execute(
        &served,
        &[
            "create table lines (id integer primary key, of integer not null references notes (id), n integer as (id * 2))",
            "create table notes (id integer primary key, text text unique, raw blob)",
            "create index lines_of on lines (of)",
            "create view texts as select text from notes",
            "insert into notes values (7, 'it''s', x'00ff')",
            "insert into lines (id, of) values (1, 7)",
            "create trigger grows after insert on lines begin insert into notes (text) values ('grown ' || new.id); end",
        ],
    )
    .await;

    let export = served.get(&format!("{}/export", path_of(TENANT))).await;
    assert_eq!(export.status, 200);
    assert_eq!(export.headers[header::CONTENT_TYPE], "application/vnd.sqlite3");
    let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&export.body)));
    assert_eq!(export.headers["content-digest"], digest);
    assert!(export.body.starts_with(b"SQLite format 3\0"));

    let imported = import(&served, COPY, export.body.clone()).await.ok(201);
    assert_eq!((&imported["events"], &imported["position"]), (&json!(600), &json!("1-600")));
    assert_eq!(imported["tables"], json!(["notes", "lines"]));
    let read = async |tenant: &str, sql: &str| {
        let path = format!("{}/query", path_of(tenant));
        served.post_json(&path, &json!({ "sql": sql })).await.ok(200)["rows"].clone()
    };
    for sql in [
        "select * from events order by seq",
        "select * from notes",
        "select * from lines",
        "select * from texts",
        "select type, name, sql from sqlite_schema where name not like 'leasehold%' order by 1, 2",
    ] {
        let (there, here) = (read(TENANT, sql).await, read(COPY, sql).await);
        assert_eq!(there, here, "{sql}");
    }
    let event = json!({ "kind": "n", "actor": "ada", "payload": 3, "idem_key": "k-3" });
    let again = served.post_json(&format!("{}/events", path_of(COPY)), &event).await.ok(200);
    assert_eq!(again, json!({ "position": "1-4", "duplicate": true }));

    import(&served, COPY, export.body).await.problem(409, "not_empty");
}

#[tokio::test]
async fn what_is_no_ledger_is_not_imported() {
    let served = Served::alone_with(|config| config.limits.import_bytes_max = 1024 * 1024).await;
    served.append(TENANT, "a").await;
    let file = served.get(&format!("{}/export", path_of(TENANT))).await.body;
    for body in [Vec::new(), b"no database".to_vec(), file[..file.len() / 2].to_vec(), vec![0; 8192]] {
        import(&served, COPY, body).await.problem(400, "malformed_body");
    }
    let mut harmed = file.clone();
    let end = harmed.len();
    harmed[end - 4096..].fill(0xa5);
    import(&served, COPY, harmed).await.problem(400, "malformed_body");
    import(&served, COPY, vec![0; 2 * 1024 * 1024]).await.problem(413, "too_large");
    let untyped = served.request(Method::PUT, &format!("{}/import", path_of(COPY))).body(file.clone());
    served.send(untyped).await.problem(400, "malformed_body");
    served.get(&path_of(COPY)).await.problem(404, "tenant_unknown");
    import(&served, COPY, file).await.ok(201);
    assert_eq!(served.kinds(COPY).await, ["a"]);
    assert_eq!(served.kinds(TENANT).await, ["a"]);
}
