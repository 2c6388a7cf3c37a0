//! A damaged tenant is told by name and harms no other; it can be forgotten.

use bytes::Bytes;
use leasehold_tenure::Router;
use leasehold_testkit::{EmbeddedPair, Fleet, PATIENCE, Replica, insert, keys_of, tenant, within};
use leasehold_types::{ErrorCode, LeaseKey};

const BYTES_MAX: u64 = 64 << 20;

struct Damaged {
    fleet: Fleet<EmbeddedPair>,
    b: Replica,
    key: LeaseKey,
    sound: LeaseKey,
}

impl Damaged {
    /// Two tenants that were handed off, before one is damaged.
    async fn handed_off(subject: &str) -> Self {
        let fleet = Fleet::manual().await;
        let (a, b) = (fleet.replica("a"), fleet.replica("b"));
        let (key, sound) = (tenant(subject), tenant("sound"));
        for key in [&key, &sound] {
            let handle = a.router.open(key).await.expect("a opens");
            insert(&handle, "k-1");
            within(PATIENCE, "the handoff", handle.handoff()).await.expect("handed off");
        }
        Self { fleet, b, key, sound }
    }

    /// The one object of the damaged tenant whose name ends so.
    async fn object(&self, end: &str) -> String {
        let names = self.fleet.stored_of(&self.key).await;
        let mut fitting = names.into_iter().filter(|name| name.contains("/snap-") && name.ends_with(end));
        let name = fitting.next().expect("an object that is published");
        assert_eq!(fitting.next(), None);
        name
    }

    /// Puts what `change` makes of an object in its place; `None` takes it away.
    async fn replace(&self, name: &str, change: impl FnOnce(Bytes) -> Option<Bytes>) {
        let store = self.fleet.store_behind();
        let key = name.parse().expect("an object key");
        let bytes = store.get(&key, BYTES_MAX).await.expect("read").expect("it is there");
        assert!(store.delete(&key).await.expect("deleted"));
        if let Some(changed) = change(bytes) {
            self.fleet.put(name, changed).await;
        }
    }

    /// The open fails with `code` and hands the lease back, another tenant is served, and a forget goes through.
    async fn is_told_as(&self, code: ErrorCode) {
        for replica in [&self.b.router, &self.fleet.replica("c").router] {
            self.opens_with(replica, code).await;
        }
        let served = self.b.router.open(&self.sound).await.expect("the other tenant opens");
        assert_eq!(keys_of(&served), ["k-1"]);
        insert(&served, "k-2");

        within(PATIENCE, "the forget", self.b.router.forget(&self.key))
            .await
            .expect("a damaged one is forgotten");
        assert!(self.fleet.stored_of(&self.key).await.is_empty());
        let anew = self.b.router.open(&self.key).await.expect("it begins anew");
        assert!(keys_of(&anew).is_empty());
    }

    async fn opens_with(&self, router: &Router, code: ErrorCode) {
        match within(PATIENCE, "the open", router.open(&self.key)).await {
            Err(error) => {
                assert_eq!(error.code(), code, "{error}");
                let told = chain(&error);
                assert!(told.contains(self.key.tenant().as_str()), "it says which tenant: {told}");
            }
            Ok(_) => panic!("a damaged tenant opened"),
        }
        let row = self.fleet.lease_store().read(&self.key).await.expect("the row").expect("there is one");
        assert!(row.owner.is_none(), "the lease is handed back");
        assert!(router.handle_of(&self.key).is_none());
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        told.push_str(": ");
        told.push_str(&cause.to_string());
        source = cause.source();
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_image() {
    let damaged = Damaged::handed_off("truncated").await;
    let image = damaged.object(".db").await;
    damaged.replace(&image, |bytes| Some(bytes.slice(..bytes.len() / 2))).await;
    damaged.is_told_as(ErrorCode::Damaged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_with_a_changed_byte() {
    let damaged = Damaged::handed_off("changed").await;
    let image = damaged.object(".db").await;
    damaged
        .replace(&image, |bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            Some(bytes.into())
        })
        .await;
    damaged.is_told_as(ErrorCode::Damaged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_missing() {
    let damaged = Damaged::handed_off("missing").await;
    let image = damaged.object(".db").await;
    damaged.replace(&image, |_bytes| None).await;
    damaged.is_told_as(ErrorCode::Damaged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_is_none() {
    let damaged = Damaged::handed_off("manifest").await;
    let manifest = damaged.object(".json").await;
    damaged.replace(&manifest, |bytes| Some(bytes.slice(..bytes.len() / 2))).await;
    damaged.is_told_as(ErrorCode::Damaged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_of_a_newer_format() {
    let damaged = Damaged::handed_off("newer").await;
    let manifest = damaged.object(".json").await;
    damaged
        .replace(&manifest, |bytes| {
            let mut document: serde_json::Value = serde_json::from_slice(&bytes).expect("a manifest");
            document["format"] = 99.into();
            Some(document.to_string().into())
        })
        .await;
    damaged.is_told_as(ErrorCode::FormatTooNew).await;
}
