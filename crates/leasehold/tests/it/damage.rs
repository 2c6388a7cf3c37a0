//! What the store holds is damaged, gone, or newer than this build: the tenant's calls say so by code and name, others go on.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::process::{Replica, leasehold};

/// A published tenant's only object of this kind: its file and its key.
fn object(data_dir: &Path, tenant: &str, is_it: impl Fn(&str) -> bool) -> (PathBuf, String) {
    let epoch = data_dir.join("store/objects").join(tenant).join("e00000001");
    let names = fs::read_dir(&epoch).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = names.filter(|name| is_it(name)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let name = found.remove(0);
    (epoch.join(&name), format!("{tenant}/e00000001/{name}"))
}

fn is_image(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "db")
}

fn is_manifest(name: &str) -> bool {
    name == "snap-000001.json"
}

#[tokio::test(flavor = "multi_thread")]
async fn each_damage_is_named_and_no_other_tenant_suffers() {
    let dir = tempfile::tempdir().unwrap();
    let replica = Replica::start(dir.path()).await;
    for tenant in ["acme/cut", "acme/gone", "acme/newer", "acme/garbled", "acme/fine"] {
        replica.write(tenant, "k-1").await;
    }
    replica.stop().await.assert(0);

    let (cut, cut_key) = object(dir.path(), "acme/cut", is_image);
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let (gone, gone_key) = object(dir.path(), "acme/gone", is_image);
    fs::remove_file(gone).unwrap();
    let (newer, newer_key) = object(dir.path(), "acme/newer", is_manifest);
    let manifest = fs::read_to_string(&newer).unwrap();
    assert!(manifest.contains("\"format\":1"), "{manifest}");
    fs::write(&newer, manifest.replace("\"format\":1", "\"format\":2")).unwrap();
    let (garbled, garbled_key) = object(dir.path(), "acme/garbled", is_manifest);
    fs::write(garbled, b"{").unwrap();

    let replica = Replica::start(dir.path()).await;
    let expected = [
        ("acme/cut", "damaged", cut_key),
        ("acme/gone", "damaged", gone_key),
        ("acme/newer", "format_too_new", newer_key),
        ("acme/garbled", "damaged", garbled_key),
    ];
    let data_dir = dir.path().to_str().unwrap();
    for (tenant, code, object) in &expected {
        for answer in [replica.events(tenant).await, replica.append(tenant, "k-2").await] {
            let answer = answer.assert(500);
            assert_eq!(answer.code(), *code, "{answer:?}");
            assert!(answer.body["detail"].as_str().unwrap().contains(object), "{object} in {answer:?}");
        }
        let called = replica.tenant(["snapshot", tenant, "--json"]).await.assert(4);
        assert_eq!(called.error_code(), *code);

        let verified = leasehold(["snapshot", "verify", tenant, "--data-dir", data_dir]).await.assert(4);
        assert!(verified.out.contains("damaged: ") && verified.out.contains(object), "{verified:?}");
        let verified = leasehold(["snapshot", "verify", tenant, "--data-dir", data_dir, "--json"]).await;
        let verified = verified.assert(4).document();
        assert_eq!(
            (&verified["damaged"], &verified["snapshots"][0]["error"]["code"]),
            (&1.into(), &(*code).into())
        );
        let to = dir.path().join("restored.db");
        let restore =
            ["snapshot", "restore", tenant, "--to", to.to_str().unwrap(), "--data-dir", data_dir, "--json"];
        let restored = leasehold(restore).await.assert(4);
        assert_eq!(restored.error_code(), *code);
        assert!(!to.exists());
        leasehold(["snapshot", "list", tenant, "--data-dir", data_dir]).await.assert(0);
    }
    assert_eq!(replica.names("acme/fine").await, ["k-1"]);
    replica.write("acme/fine", "k-2").await;
    let fine = leasehold(["snapshot", "verify", "acme/fine", "--data-dir", data_dir]).await.assert(0);
    assert!(fine.out.contains("1.1  ok"), "{fine:?}");

    // A damaged tenant can be forgotten.
    replica.tenant(["forget", "acme/cut", "--yes"]).await.assert(0);
    replica.stop().await.assert(0);
}
