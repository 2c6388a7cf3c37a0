//! Two replicas on one data directory.

use serde_json::json;

use crate::served::{Served, config_in, path_of};

const TENANT: &str = "acme/user-1";

#[tokio::test]
async fn what_one_holds_the_other_points_to_until_it_is_handed_off() {
    let dir = tempfile::tempdir().unwrap();
    let one = Served::start(config_in(dir.path())).await;
    let other = Served::start(config_in(dir.path())).await;
    one.append(TENANT, "a").await;

    for answered in [
        other.get(&format!("{}/events", path_of(TENANT))).await,
        other.put(&path_of(TENANT)).await,
        other.delete(&path_of(TENANT)).await,
        other.post(&format!("{}/handoff", path_of(TENANT))).await,
    ] {
        let problem = answered.problem(409, "lease_held");
        assert_eq!((&problem["owner"], &problem["endpoint"]), (&json!("dev-1"), &json!(one.url)));
        assert_eq!((&problem["epoch"], &problem["executed"]), (&json!(1), &json!("no")));
        assert!(answered.headers.contains_key("retry-after"));
    }
    let seen = other.get(&path_of(TENANT)).await.ok(200);
    assert_eq!((&seen["state"], &seen["endpoint"]), (&json!("held"), &json!(one.url)));

    one.post(&format!("{}/handoff", path_of(TENANT))).await.ok(200);
    assert_eq!(other.kinds(TENANT).await, ["a"]);
    assert_eq!(other.append(TENANT, "b").await, "2-2");
    let problem = one.get(&format!("{}/events", path_of(TENANT))).await.problem(409, "lease_held");
    assert_eq!(problem["endpoint"], other.url);
}

#[tokio::test]
async fn the_fleet_is_listed_and_a_replica_leaves_it() {
    let dir = tempfile::tempdir().unwrap();
    let one = Served::start(config_in(dir.path())).await;
    let other = Served::start(config_in(dir.path())).await;
    one.append(TENANT, "a").await;
    let fleet = other.get("/v1/replicas").await.ok(200);
    let replicas = fleet["replicas"].as_array().unwrap();
    assert_eq!(replicas.len(), 2, "{fleet}");
    assert_eq!((&replicas[0]["replica"], &replicas[0]["this"]), (&json!("dev-1"), &json!(false)));
    assert_eq!((&replicas[1]["endpoint"], &replicas[1]["this"]), (&json!(other.url), &json!(true)));
    assert!(replicas.iter().all(|replica| replica["alive"] == true && replica["draining"] == false));

    assert_eq!(one.post("/v1/drain").await.ok(200), json!({ "failed": [] }));
    assert_eq!(one.get("/readyz").await.ok(503)["status"], "draining");
    one.get(&format!("{}/events", path_of(TENANT))).await.problem(503, "draining");
    assert_eq!(other.kinds(TENANT).await, ["a"]);
    let fleet = other.get("/v1/replicas").await.ok(200);
    assert_eq!(fleet["replicas"][0]["draining"], true);

    one.stop().await.unwrap();
    let fleet = other.get("/v1/replicas").await.ok(200);
    assert_eq!(fleet["replicas"].as_array().unwrap().len(), 1, "{fleet}");
}
