//! Services by their tokens: made, shown once, let in, exchanged, revoked, and told of in the log.

use crate::{
    ground::{Ground, over_each_pair},
    process::{Ended, Replica, leasehold},
};
use leasehold_testkit::{PATIENCE, eventually};

const ASKING: [(&str, &str); 3] = [
    ("LEASEHOLD_AUTH__MODE", "required"),
    ("LEASEHOLD_AUTH__REFRESH_EVERY", "50ms"),
    ("LEASEHOLD_LOG__FILTER", "leasehold_audit=info,warn"),
];

async fn by(replica: &Replica, token_file: &str, arguments: &[&str]) -> Ended {
    let asked = ["tenant", "--endpoint", &replica.endpoint, "--token-file", token_file];
    leasehold(asked.iter().chain(arguments)).await
}

async fn a_services_life(ground: Ground) {
    let file = |name: &str, token: &str| {
        let path = ground.dir.path().join(name);
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let replica = ground.start_in("one", &ASKING).await;
    let refused = replica.tenant(["status", "acme/u", "--json"]).await.assert(1);
    assert_eq!(refused.error_code(), "unauthenticated");

    let created = ground
        .verb(["token", "create", "ops", "--orgs", "acme", "--scopes", "read,append,forget", "--by", "ada"])
        .await
        .assert(0);
    let token = created.out.trim().to_owned();
    assert!(
        token.starts_with("lh_") && created.out.lines().count() == 1,
        "a pipe gets the token and nothing else"
    );
    let secret = token.rsplit_once('_').unwrap().1.to_owned();
    assert!(!created.err.contains(&secret) && created.err.contains("not shown again"), "{created:?}");
    let id = token.split('_').nth(1).unwrap().to_owned();
    let told = |ended: &Ended, parts: &[&str]| {
        let is_told = |line: &str| line.contains(" audit ") && parts.iter().all(|part| line.contains(part));
        assert!(ended.err.lines().any(is_told), "{parts:?} in {ended:?}");
    };
    told(&created, &["action=\"token_create\"", &format!("token={id}"), "name=ops", "by=\"ada\""]);
    let ops = file("ops.token", &created.out);
    eventually(PATIENCE, "the token is known", async || {
        by(&replica, &ops, &["list", "acme"]).await.code == Some(0)
    })
    .await;
    by(&replica, &ops, &["status", "acme/u"]).await.assert(3);
    let refused = by(&replica, &ops, &["status", "other/u", "--json"]).await.assert(1);
    assert_eq!(refused.error_code(), "forbidden");
    let refused = by(&replica, &ops, &["handoff", "acme/u", "--json"]).await.assert(1);
    assert!(refused.out.contains("operate"), "it says which scope: {refused:?}");

    let second = ground
        .verb([
            "token",
            "create",
            "ops",
            "--orgs",
            "*",
            "--scopes",
            "read operate",
            "--expires-in",
            "1h",
            "--json",
        ])
        .await
        .assert(0)
        .document();
    let third = ground.verb(["token", "create", "ops", "--orgs", "*", "--scopes", "read", "--json"]).await;
    assert_eq!(third.error_code(), "precondition_failed");
    let list = ground.verb(["token", "list"]).await.assert(0);
    assert!(list.out.contains("ops") && list.out.contains("read append forget"), "{list:?}");
    assert!(!list.out.contains(&secret), "{list:?}");
    let list = ground.verb(["token", "list", "--json"]).await.assert(0).document();
    assert_eq!(list["tokens"].as_array().unwrap().len(), 2);
    assert!(!list.to_string().contains(&secret), "{list}");
    let next = file("next.token", second["token"].as_str().unwrap());
    eventually(PATIENCE, "the next is known", async || {
        by(&replica, &next, &["list", "beta"]).await.code == Some(0)
    })
    .await;

    by(&replica, &ops, &["forget", "acme/u", "--yes"]).await;
    let revoked = ground.verb(["token", "revoke", &id]).await.assert(0);
    let uid = format!("uid {}", rustix::process::getuid().as_raw());
    told(&revoked, &["action=\"token_revoke\"", &format!("token={id}"), &uid]);
    eventually(PATIENCE, "the first is known no more", async || {
        by(&replica, &ops, &["list", "acme"]).await.code == Some(1)
    })
    .await;
    by(&replica, &next, &["list", "acme"]).await.assert(0);
    assert_eq!(ground.verb(["token", "revoke", &id, "--json"]).await.assert(3).error_code(), "not_found");
    let revoked = ground.verb(["token", "revoke", "ops", "--json"]).await.assert(0).document();
    assert_eq!(revoked["revoked"].as_array().unwrap().len(), 1);
    eventually(PATIENCE, "nobody is known any more", async || {
        by(&replica, &next, &["list", "acme"]).await.code == Some(1)
    })
    .await;

    let told = replica.stop().await.assert(0).err;
    let of_action = |action: &str| {
        let wanted = format!("action=\"{action}\"");
        told.lines().filter(move |line| line.contains(" audit ") && line.contains(&wanted)).count()
    };
    assert_eq!((of_action("token_known"), of_action("token_gone")), (2, 2), "{told}");
    let next = second["token"].as_str().unwrap().rsplit_once('_').unwrap().1;
    assert!(!told.contains(&secret) && !told.contains(next), "no log shows a token");
}

async fn what_is_done_is_told_with_who_did_it(ground: Ground) {
    let replica = ground.start_in("one", &ASKING).await;
    let all = "read append sql operate forget admin";
    let created = ground.verb(["token", "create", "ops", "--orgs", "*", "--scopes", all]).await.assert(0);
    let ops = ground.dir.path().join("ops.token");
    std::fs::write(&ops, &created.out).unwrap();
    let ops = ops.to_str().unwrap();
    eventually(PATIENCE, "the token is known", async || {
        by(&replica, ops, &["list", "acme"]).await.code == Some(0)
    })
    .await;
    let token = created.out.trim();
    let answered = put(&replica, "/v1/orgs/acme/tenants/u", token).await;
    assert!(answered.contains("201 Created"), "{answered}");
    let to = ground.dir.path().join("u.db");
    by(&replica, ops, &["export", "acme/u", "--to", to.to_str().unwrap()]).await.assert(0);
    by(&replica, ops, &["handoff", "acme/u"]).await.assert(0);
    by(&replica, ops, &["pause", "acme/u"]).await.assert(0);
    by(&replica, ops, &["resume", "acme/u"]).await.assert(0);
    by(&replica, ops, &["abandon", "acme/u"]).await.assert(0);
    by(&replica, ops, &["forget", "acme/u", "--dry-run"]).await.assert(0);
    by(&replica, ops, &["forget", "acme/u", "--yes"]).await.assert(0);
    let told = replica.stop().await.assert(0).err;
    for action in ["create", "export", "handoff", "pause", "resume", "abandon", "forget"] {
        let lines: Vec<&str> = told
            .lines()
            .filter(|line| line.contains(" audit ") && line.contains(&format!("action=\"{action}\"")))
            .collect();
        assert_eq!(lines.len(), 1, "{action}: {lines:?}");
        for part in ["outcome=\"done\"", "key=acme/u", "kind=\"service\"", "name=ops"] {
            assert!(lines[0].contains(part), "{part} in {}", lines[0]);
        }
    }
    assert!(!told.contains(token.rsplit_once('_').unwrap().1), "no log shows a token");
}

/// What a replica answers to a `PUT` without a body.
async fn put(replica: &Replica, path: &str, token: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = replica.endpoint.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

over_each_pair!(a_services_life, what_is_done_is_told_with_who_did_it);
