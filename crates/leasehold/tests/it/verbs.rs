//! Every verb that asks a replica, for people and for programs.

use std::fs;

use leasehold_ledger::verify_file;

use crate::process::Replica;

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_life_by_its_verbs() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    replica.write("acme/u", "k-1").await;

    let status = replica.tenant(["status", "acme/u"]).await.assert(0);
    for part in ["acme/u", "open", "serving", "1-1", "dev-1", &replica.endpoint, "nothing in this epoch"] {
        assert!(status.out.contains(part), "{part} in {status:?}");
    }
    let status = replica.tenant(["status", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!((&status["key"], &status["epoch"]), (&"acme/u".into(), &1.into()));

    let published = replica.tenant(["snapshot", "acme/u"]).await.assert(0);
    assert_eq!(published.out, "published snapshot 1.1: acme/u up to 1-1\n");
    let again = replica.tenant(["snapshot", "acme/u"]).await.assert(0);
    assert_eq!(again.out, "nothing to publish: snapshot 1.1 has all of acme/u\n");
    let again = replica.tenant(["snapshot", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!((&again["published"], &again["snapshot"]["number"]), (&false.into(), &1.into()));

    let handed = replica.tenant(["handoff", "acme/u"]).await.assert(0);
    assert_eq!(handed.out, "acme/u is handed off: nobody has it open, epoch 1 is published\n");
    let handed = replica.tenant(["handoff", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!(handed["state"], "released");
    assert_eq!(replica.names("acme/u").await, ["k-1"]);

    let abandoned = replica.tenant(["abandon", "acme/u"]).await.assert(0);
    assert!(abandoned.out.contains("leasehold salvage list acme/u"), "{abandoned:?}");
    let abandoned = replica.tenant(["abandon", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!((&abandoned["state"], &abandoned["epoch"]), (&"released".into(), &2.into()));

    let paused = replica.tenant(["pause", "acme/u"]).await.assert(0);
    assert_eq!(paused.out, "acme/u is paused: no replica opens it before `leasehold tenant resume acme/u`\n");
    assert!(replica.tenant(["status", "acme/u"]).await.assert(0).out.contains("released, paused"));
    let refused = replica.tenant(["snapshot", "acme/u", "--json"]).await;
    assert_eq!(refused.error_code(), "paused");
    let resumed = replica.tenant(["resume", "acme/u", "--json"]).await.assert(0).document();
    assert_eq!((&resumed["state"], &resumed["paused"]), (&"released".into(), &false.into()));
    let resumed = replica.tenant(["resume", "acme/u"]).await.assert(0);
    assert_eq!(resumed.out, "acme/u is not paused: the next call opens it\n");
    assert_eq!(replica.names("acme/u").await, ["k-1"]);

    for verb in ["status", "snapshot", "handoff", "abandon", "pause", "resume"] {
        let unknown = replica.tenant([verb, "acme/nobody"]).await.assert(3);
        assert!(unknown.err.contains("error[tenant_unknown]: ") && unknown.out.is_empty(), "{unknown:?}");
        let unknown = replica.tenant([verb, "acme/nobody", "--json"]).await.assert(3);
        assert_eq!(unknown.error_code(), "tenant_unknown");
        assert_eq!(unknown.document()["error"]["problem"]["status"], 404);
    }
    replica.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organizations_tenants_are_listed_over_all_pages() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    for tenant in ["acme/a", "acme/b", "acme/c", "other/d"] {
        replica.write(tenant, "k-1").await;
    }
    replica.tenant(["handoff", "acme/b"]).await.assert(0);
    replica.tenant(["forget", "acme/c", "--yes"]).await.assert(0);

    let listed = replica.tenant(["list", "acme"]).await.assert(0);
    let rows: Vec<Vec<&str>> = listed.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["TENANT", "STATE", "EPOCH", "OWNER", "POSITION"]);
    assert_eq!(rows[1], ["acme/a", "open", "1", "dev-1", "1-1"]);
    assert_eq!(rows[2], ["acme/b", "released", "1", "-", "-"]);
    assert_eq!(rows[3][..2], ["acme/c", "forgotten"]);
    assert_eq!(rows.len(), 4);

    let first = replica.tenant(["list", "acme", "--limit", "2", "--json"]).await.assert(0).document();
    assert_eq!((&first["has_more"], &first["next"]), (&true.into(), &"b".into()));
    assert_eq!(first["tenants"].as_array().unwrap().len(), 2);
    let rest = replica.tenant(["list", "acme", "--after", "b", "--json"]).await.assert(0).document();
    assert_eq!((&rest["has_more"], &rest["tenants"][0]["key"]), (&false.into(), &"acme/c".into()));
    let none = replica.tenant(["list", "nobody", "--json"]).await.assert(0).document();
    assert_eq!(none["tenants"].as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_is_confirmed_and_gives_a_receipt() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    replica.write("acme/u", "k-1").await;

    let asked = replica.tenant(["forget", "acme/u"]).await.assert(2);
    assert!(asked.err.contains("no terminal") && asked.err.contains("--yes"), "{asked:?}");
    let asked = replica.tenant(["forget", "acme/u", "--json"]).await.assert(2);
    assert_eq!(asked.error_code(), "invalid_argument");

    let dry = replica.tenant(["forget", "acme/u", "--dry-run"]).await.assert(0);
    assert!(dry.out.contains("would forget acme/u at epoch 1") && dry.out.contains("nothing was deleted"));
    let dry = replica.tenant(["forget", "acme/u", "--dry-run", "--json"]).await.assert(0).document();
    assert_eq!(dry["dry_run"], true);
    let other = replica.tenant(["forget", "acme/u", "--yes", "--if-epoch", "9", "--json"]).await.assert(1);
    assert_eq!(other.error_code(), "precondition_failed");
    assert_eq!(replica.names("acme/u").await, ["k-1"], "nothing was forgotten yet");

    let receipt = replica.tenant(["forget", "acme/u", "--yes", "--if-epoch", "1"]).await.assert(0);
    for part in ["forgotten", "acme/u", "epoch 1", "deleted", "verified", "looked at again"] {
        assert!(receipt.out.contains(part), "{part} in {receipt:?}");
    }
    let stored = replica.tenant(["forget", "acme/u", "--yes", "--json"]).await.assert(0).document();
    assert_eq!((&stored["key"], &stored["floor"]), (&"acme/u".into(), &1.into()));
    assert!(receipt.out.contains(stored["verified_at"].as_str().unwrap()), "the same receipt: {receipt:?}");
    let gone = replica.tenant(["status", "acme/u", "--json"]).await.assert(3).document();
    assert_eq!(gone["error"]["code"], "tenant_forgotten");
    assert_eq!(gone["error"]["problem"]["receipt"], stored);
    let unknown = replica.tenant(["forget", "acme/nobody", "--yes"]).await.assert(3);
    assert!(unknown.err.contains("tenant_unknown"), "{unknown:?}");
    replica.stop().await.assert(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_verified_and_overwrites_nothing_unless_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    for name in ["k-1", "k-2"] {
        replica.write("acme/u", name).await;
    }
    let (files, to) = (dir.path().join("files"), dir.path().join("files/u.db"));
    fs::create_dir(&files).unwrap();
    let to_text = to.to_str().unwrap();
    let exported = replica.tenant(["export", "acme/u", "--to", to_text]).await.assert(0);
    assert!(
        exported.out.starts_with(&format!("wrote {to_text}: ")) && exported.err.is_empty(),
        "{exported:?}"
    );
    assert_eq!(verify_file(&to).unwrap().position.unwrap().seq, 2);

    replica.write("acme/u", "k-3").await;
    let refused = replica.tenant(["export", "acme/u", "--to", to_text]).await.assert(2);
    assert!(refused.err.contains("is there already"), "{refused:?}");
    assert_eq!(verify_file(&to).unwrap().position.unwrap().seq, 2, "left as it was");
    let forced = replica.tenant(["export", "acme/u", "--to", to_text, "--force", "--json"]).await.assert(0);
    let document = forced.document();
    assert_eq!(document["bytes"], fs::metadata(&to).unwrap().len());
    assert_eq!(document["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(verify_file(&to).unwrap().position.unwrap().seq, 3);

    let nowhere = dir.path().join("nowhere/u.db");
    let refused =
        replica.tenant(["export", "acme/u", "--to", nowhere.to_str().unwrap(), "--json"]).await.assert(1);
    assert_eq!(refused.error_code(), "local_io");
    let other = files.join("nobody.db");
    replica.tenant(["export", "acme/nobody", "--to", other.to_str().unwrap()]).await.assert(3);
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1, "nothing unfinished is left");
    replica.stop().await.assert(0);
}
