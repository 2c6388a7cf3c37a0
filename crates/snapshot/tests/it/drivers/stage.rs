//! Two stores with faults, and files that look like databases.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use leasehold_blob::{BlobKey, BlobStore, DirectoryStore, Payload, Put};
use leasehold_lease::{Acquisition, Claim, SqliteLeaseStore, TokioTimer};
use leasehold_snapshot::{
    ImageFile, Opened, OwnManifests, Published, Retry, SnapshotContext, SnapshotError, SnapshotOptions, open,
    plan::Keep, publish,
};
use leasehold_testkit::{FaultyBlobs, FaultyLeases, ManualClock};
use leasehold_types::{Entropy, Epoch, Floor, LeaseKey, NoPoints, Position, Timer};
use tempfile::TempDir;

pub(super) const TTL: Duration = Duration::from_secs(10);
pub(super) const PAGE: usize = 4096;

pub(super) struct Stage {
    pub(super) ctx: SnapshotContext,
    pub(super) blobs: FaultyBlobs,
    pub(super) leases: FaultyLeases,
    pub(super) clock: ManualClock,
    pub(super) key: LeaseKey,
    dir: TempDir,
}

pub(super) fn stage() -> Stage {
    stage_with(Arc::new(TokioTimer), |_| {})
}

/// Retries wait next to nothing, so that the real timer costs nothing.
pub(super) fn stage_with(timer: Arc<dyn Timer>, change: impl FnOnce(&mut SnapshotOptions)) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let store = DirectoryStore::open_without_sync(&dir.path().join("store")).unwrap();
    let rows = SqliteLeaseStore::open(&dir.path().join("leases.db"), Arc::new(clock.clone())).unwrap();
    let (blobs, leases) = (FaultyBlobs::new(Arc::new(store)), FaultyLeases::new(Arc::new(rows)));
    let mut options = SnapshotOptions {
        retry: Retry { tries: 3, wait_first: Duration::from_millis(1), wait_max: Duration::from_millis(2) },
        keep: Keep { superseded: 0, ..SnapshotOptions::default().keep },
        ..SnapshotOptions::default()
    };
    change(&mut options);
    let ctx = SnapshotContext {
        blobs: Arc::new(blobs.clone()),
        leases: Arc::new(leases.clone()),
        clock: Arc::new(clock.clone()),
        timer,
        entropy: Arc::new(Entropy::seeded(1)),
        points: Arc::new(NoPoints),
        options,
    };
    Stage { ctx, blobs, leases, clock, key: "acme/u".parse().unwrap(), dir }
}

/// What passes for a database of `pages` pages: a header, then `seed`.
pub(super) fn database(pages: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![seed; pages * PAGE];
    bytes[..16].copy_from_slice(b"SQLite format 3\0");
    bytes[16..18].copy_from_slice(&u16::try_from(PAGE).unwrap().to_be_bytes());
    bytes
}

impl Stage {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The file that tenures restore to, alone in its directory.
    pub(super) fn ledger(&self) -> PathBuf {
        let dir = self.path("local");
        std::fs::create_dir_all(&dir).unwrap();
        dir.join("ledger.db")
    }

    pub(super) fn files(&self) -> Vec<String> {
        let dir = std::fs::read_dir(self.ledger().parent().unwrap()).unwrap();
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// A new tenure takes the row, once its owner's lease has run out.
    pub(super) async fn acquire(&self, replica: &str) -> (Claim, Floor) {
        self.clock.advance(TTL);
        let (replica, tenure) = (replica.parse().unwrap(), self.ctx.entropy.tenure_id());
        match self.ctx.leases.acquire(&self.key, &replica, tenure, TTL).await.unwrap() {
            Acquisition::Granted(grant) => {
                (Claim { key: self.key.clone(), replica, tenure, epoch: grant.epoch }, grant.floor)
            }
            other => panic!("held by {other:?}"),
        }
    }

    pub(super) async fn try_open(&self, replica: &str) -> Result<Opened, SnapshotError> {
        let (claim, floor) = self.acquire(replica).await;
        open(&self.ctx, claim, floor, TTL, &self.ledger(), &|_| false).await
    }

    pub(super) async fn open(&self, replica: &str) -> Opened {
        self.try_open(replica).await.unwrap()
    }

    pub(super) fn image(&self, seed: u8) -> ImageFile {
        let path = self.path(&format!("image-{seed}"));
        std::fs::write(&path, database(3, seed)).unwrap();
        let position = Position { epoch: Epoch::FIRST, seq: u64::from(seed) };
        ImageFile { path, position, page_size: u32::try_from(PAGE).unwrap(), pages: 3 }
    }

    pub(super) async fn publish(
        &self,
        claim: &Claim,
        own: &mut OwnManifests,
        seed: u8,
    ) -> Result<Published, SnapshotError> {
        publish(&self.ctx, claim, own, &self.image(seed), false, &|| Ok(())).await
    }

    /// What is in the store under the tenant's prefix, read past all faults.
    pub(super) fn names(&self) -> Vec<String> {
        fn walk(dir: &Path, root: &Path, names: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, names);
                } else {
                    names.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let root = self.path("store/objects").join(self.key.to_string());
        let mut names = Vec::new();
        walk(&root, &root, &mut names);
        names.sort();
        names
    }

    /// The key of the one object whose name contains `part`.
    pub(super) fn object(&self, part: &str) -> BlobKey {
        let names = self.names();
        let mut found = names.iter().filter(|name| name.contains(part));
        let name = found.next().unwrap();
        assert_eq!(found.next(), None, "{names:?}");
        format!("{}/{name}", self.key).parse().unwrap()
    }

    /// Replaces an object, as no store would.
    pub(super) async fn replace(&self, key: &BlobKey, body: impl Into<Bytes>) {
        let blobs: &dyn BlobStore = &self.blobs;
        blobs.delete(key).await.unwrap();
        let payload = Payload::Bytes(body.into());
        assert_eq!(blobs.put_if_absent(key, payload).await.unwrap(), Put::Created);
    }

    pub(super) async fn body(&self, key: &BlobKey) -> Vec<u8> {
        self.ctx.blobs.get(key, u64::MAX).await.unwrap().unwrap().to_vec()
    }
}
