//! What is in the store is not believed: every way in which an image can be wrong is an error with its key.

use bytes::Bytes;
use leasehold_blob::{BlobKey, BlobStore as _};
use leasehold_snapshot::{
    Layout, SnapshotError,
    format::{Content, Digest, Encoding, Entry, Manifest},
};
use leasehold_testkit::SmallDisk;
use leasehold_types::ErrorCode;

use super::stage::{Stage, TTL, database, stage};
use crate::world::at;

/// A store with one snapshot.
async fn published() -> Stage {
    let stage = stage();
    let mut first = stage.open("a").await;
    stage.publish(&first.claim, &mut first.own, 1).await.unwrap();
    stage
}

async fn refused(stage: &Stage, code: ErrorCode, object: &BlobKey) -> SnapshotError {
    let error = stage.try_open("b").await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().starts_with(object.as_str()), "{error}");
    assert_eq!(stage.files(), [""; 0], "nothing is left of it: {error}");
    error
}

#[tokio::test]
async fn an_image_that_is_not_what_was_published_is_never_decoded() {
    let changes: [fn(&mut Vec<u8>); 4] = [
        |body| body.truncate(body.len() / 2),
        |body| body.push(0),
        |body| body[10] ^= 1,
        |body| body.clear(),
    ];
    for change in changes {
        let stage = published().await;
        let image = stage.object(".db");
        let mut body = stage.body(&image).await;
        change(&mut body);
        stage.replace(&image, body).await;
        refused(&stage, ErrorCode::Damaged, &image).await;
    }
}

#[tokio::test]
async fn a_part_that_is_missing_is_damage() {
    let stage = published().await;
    let image = stage.object(".db");
    stage.blobs.delete(&image).await.unwrap();
    let error = refused(&stage, ErrorCode::Damaged, &image).await;
    assert!(error.to_string().contains("snapshot 1.1"), "{error}");
}

#[tokio::test]
async fn a_manifest_of_a_newer_format_is_named() {
    let stage = published().await;
    let manifest = stage.object("snap-000001.json");
    let newer = String::from_utf8(stage.body(&manifest).await).unwrap().replacen(":1,", ":2,", 1);
    stage.replace(&manifest, newer).await;
    refused(&stage, ErrorCode::FormatTooNew, &manifest).await;
}

#[tokio::test]
async fn a_manifest_that_is_too_long_is_not_read() {
    let stage = published().await;
    let manifest = stage.object("snap-000001.json");
    stage.replace(&manifest, vec![b' '; 3 * 1024 * 1024]).await;
    refused(&stage, ErrorCode::Damaged, &manifest).await;
}

/// A snapshot whose bytes are as its manifest says and whose content is not.
async fn replaced(stage: &Stage, content: &[u8], change: impl FnOnce(&mut Manifest)) -> BlobKey {
    let layout = Layout::new(&stage.key);
    let (name, image) = (stage.object("snap-000001.json"), stage.object(".db"));
    let Entry::Published(mut manifest) = Entry::decode(&layout, at(1, 1), &stage.body(&name).await).unwrap()
    else {
        panic!("a seal")
    };
    let part = &mut manifest.parts[0];
    (part.bytes, part.sha256) = (content.len() as u64, Digest::of(content));
    change(&mut manifest);
    stage.replace(&image, content.to_vec()).await;
    stage.replace(&name, manifest.encode()).await;
    image
}

#[tokio::test]
async fn what_does_not_decode_to_the_database_that_the_manifest_says_is_damage() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let mut no_header = database(3, 1);
    no_header[0] = b's';
    let mut other_pages = database(3, 1);
    other_pages[16..18].copy_from_slice(&[0x20, 0]);
    let whole = zstd(&database(3, 1));
    let cases = [
        ("no zstd", b"not zstd at all".to_vec()),
        ("cut", whole[..whole.len() - 4].to_vec()),
        ("too short", zstd(&database(2, 1))),
        ("too long", zstd(&database(4, 1))),
        ("a bomb", zstd(&vec![0; 64 * 1024 * 1024])),
        ("no header", zstd(&no_header)),
        ("other pages", zstd(&other_pages)),
        ("nothing", zstd(b"")),
    ];
    for (what, content) in cases {
        let stage = published().await;
        let image = replaced(&stage, &content, |_| {}).await;
        let error = refused(&stage, ErrorCode::Damaged, &image).await;
        println!("{what}: {error}");
    }
}

#[tokio::test]
async fn a_plain_part_and_an_inline_one_are_read() {
    let stage = published().await;
    let content = database(3, 7);
    replaced(&stage, &content, |manifest| manifest.parts[0].encoding = Encoding::Plain).await;
    stage.open("b").await;
    assert_eq!(std::fs::read(stage.ledger()).unwrap(), content);

    let stage = published().await;
    let content = Bytes::from(zstd::encode_all(&database(3, 8)[..], 1).unwrap());
    let inline = Content::Inline(content.clone());
    let image = replaced(&stage, &content, |manifest| manifest.parts[0].content = inline).await;
    stage.blobs.delete(&image).await.unwrap();
    stage.open("b").await;
    assert_eq!(std::fs::read(stage.ledger()).unwrap(), database(3, 8));
}

#[tokio::test]
async fn a_full_disk_is_named_and_leaves_nothing_half_written() {
    let disk = match SmallDisk::mount(64 * 1024) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk here: {reason}"),
    };
    let stage = stage();
    let mut first = stage.open("a").await;
    let mut image = stage.image(1);
    std::fs::write(&image.path, database(64, 1)).unwrap();
    image.pages = 64;
    leasehold_snapshot::publish(&stage.ctx, &first.claim, &mut first.own, &image, false, &|| Ok(()))
        .await
        .unwrap();
    let (claim, floor) = stage.acquire("b").await;
    let into = disk.path().join("ledger.db");
    let open = leasehold_snapshot::open(&stage.ctx, claim, floor, TTL, &into, &|_| false);
    let error = open.await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::DiskFull, "{error}");
    assert!(error.to_string().contains(disk.path().to_str().unwrap()), "{error}");
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0);
}
