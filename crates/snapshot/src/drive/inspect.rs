//! Reading snapshots without a lease: for operators.

use std::{fmt, path::Path, pin::pin, str::FromStr};

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use leasehold_blob::BlobKey;
use leasehold_types::{Epoch, LeaseKey, Position, Timestamp};

use super::{
    context::SnapshotContext,
    fetch::{Fetched, Restored, fetch},
};
use crate::{
    Layout, Listing, SnapshotError, SnapshotNumber, SnapshotRef,
    format::{Entry, Manifest},
    plan::{Answer, Ask},
};

/// How many manifests are read at the same time.
const READS_AT_ONCE: usize = 8;

/// How often a newest snapshot is looked for whose parts are swept while it is fetched.
const TRIES_MAX: u32 = 4;

/// Which snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest one.
    Newest,
    /// This one.
    Snapshot(SnapshotRef),
    /// The newest one that was published at this time or before it, by its publisher's calendar.
    Time(Timestamp),
    /// The newest one whose last event stands at this position or before it.
    Position(Position),
}

/// A text that names no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no snapshot: write newest, <epoch>.<number>, <epoch>-<seq> or an RFC 3339 time")]
pub struct AtError {
    text: String,
}

impl FromStr for At {
    type Err = AtError;

    fn from_str(text: &str) -> Result<Self, AtError> {
        let snapshot = || {
            let (epoch, number) = text.split_once('.')?;
            let epoch = Epoch::new(epoch.parse().ok()?).ok()?;
            let number = SnapshotNumber::new(number.parse().ok()?).ok()?;
            Some(Self::Snapshot(SnapshotRef { epoch, number }))
        };
        if text == "newest" {
            return Ok(Self::Newest);
        }
        snapshot()
            .or_else(|| text.parse().ok().map(Self::Position))
            .or_else(|| text.parse().ok().map(Self::Time))
            .ok_or_else(|| AtError { text: text.chars().take(64).collect() })
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest => f.write_str("newest"),
            Self::Snapshot(snapshot) => snapshot.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Position(position) => position.fmt(f),
        }
    }
}

/// A snapshot as the store shows it.
#[derive(Debug)]
pub struct SnapshotInfo {
    /// The snapshot.
    pub snapshot: SnapshotRef,
    /// Its manifest, or what is wrong with that.
    pub manifest: Result<Box<Manifest>, SnapshotError>,
    /// Whether all of its parts are in the store: those of superseded snapshots are swept.
    pub available: bool,
}

/// Up to `limit` snapshots of a tenant above its floor, newest first.
pub async fn list(
    ctx: &SnapshotContext,
    key: &LeaseKey,
    limit: usize,
) -> Result<Vec<SnapshotInfo>, SnapshotError> {
    let layout = Layout::new(key);
    let seen = see(ctx, &layout).await?;
    infos(ctx, &layout, &seen).take(limit).try_collect().await
}

/// What is above the floor.
async fn see(ctx: &SnapshotContext, layout: &Layout) -> Result<Listing, SnapshotError> {
    let floors = ctx.perform(layout, &Ask::ReadFloors).await?;
    let listing = ctx.perform(layout, &Ask::List).await?;
    let (Answer::Floors(floor), Answer::Listed(mut seen)) = (floors, listing) else {
        return Ok(Listing::default());
    };
    seen.epochs.retain(|epoch, _| !floor.covers(*epoch));
    Ok(seen)
}

/// The snapshots in `seen`, newest first, a few of them read ahead.
fn infos<'a>(
    ctx: &'a SnapshotContext,
    layout: &'a Layout,
    seen: &'a Listing,
) -> impl Stream<Item = Result<SnapshotInfo, SnapshotError>> + 'a {
    let names = seen.epochs.iter().rev().flat_map(|(epoch, facts)| {
        facts.manifests.iter().rev().map(|number| SnapshotRef { epoch: *epoch, number: *number })
    });
    let looks = stream::iter(names).map(move |at| look(ctx, layout, seen, at)).buffered(READS_AT_ONCE);
    looks.try_filter_map(async |info| Ok(info))
}

/// One snapshot; `None`: a seal, or gone meanwhile. Only the store's own failure is an error of the whole.
async fn look(
    ctx: &SnapshotContext,
    layout: &Layout,
    listing: &Listing,
    at: SnapshotRef,
) -> Result<Option<SnapshotInfo>, SnapshotError> {
    let manifest = match read(ctx, layout, at).await {
        Ok(None) => return Ok(None),
        Ok(Some(manifest)) => Ok(manifest),
        Err(error @ (SnapshotError::Damaged { .. } | SnapshotError::FormatTooNew { .. })) => Err(error),
        Err(error) => return Err(error),
    };
    let there = |object: &BlobKey| {
        listing.epochs.values().flat_map(|facts| &facts.images).any(|image| image.key == *object)
    };
    let available = manifest.as_ref().is_ok_and(|manifest| manifest.objects().all(there));
    Ok(Some(SnapshotInfo { snapshot: at, manifest, available }))
}

async fn read(
    ctx: &SnapshotContext,
    layout: &Layout,
    at: SnapshotRef,
) -> Result<Option<Box<Manifest>>, SnapshotError> {
    let answer = ctx.perform(layout, &Ask::Get(layout.manifest(at))).await?;
    let Answer::Got(Some(body)) = answer else { return Ok(None) };
    Ok(match Entry::decode(layout, at, &body)? {
        Entry::Published(manifest) => Some(manifest),
        Entry::Sealed(_) => None,
    })
}

/// Brings a snapshot to `to`, replacing what is there: every part's length and digest verified, the database of
/// the size that the manifest says. Whether the database is sound inside is the ledger's to check. Needs no
/// lease and changes nothing in the store.
pub async fn restore_to(
    ctx: &SnapshotContext,
    key: &LeaseKey,
    at: At,
    to: &Path,
) -> Result<Restored, SnapshotError> {
    let layout = Layout::new(key);
    let mut tries = 0;
    loop {
        let manifest = choose(ctx, &layout, at).await?;
        let object = layout.manifest(manifest.snapshot());
        match fetch(ctx, &manifest, &object, to).await? {
            Fetched::Here(restored) => return Ok(restored),
            Fetched::Missing(part) => {
                tries += 1;
                // Superseded and swept meanwhile: then there is a newer one.
                if at != At::Newest || tries >= TRIES_MAX {
                    let detail =
                        format!("it belongs to snapshot {} and is not in the store", manifest.snapshot());
                    return Err(SnapshotError::damaged(&part, detail));
                }
            }
        }
    }
}

async fn choose(ctx: &SnapshotContext, layout: &Layout, at: At) -> Result<Box<Manifest>, SnapshotError> {
    let none = || SnapshotError::NoSuchSnapshot { key: layout.key().clone(), which: at.to_string() };
    if let At::Snapshot(at) = at {
        return read(ctx, layout, at).await?.ok_or_else(none);
    }
    let seen = see(ctx, layout).await?;
    let mut infos = pin!(infos(ctx, layout, &seen));
    while let Some(info) = infos.try_next().await? {
        // One that cannot be read is never passed over in silence.
        let manifest = info.manifest?;
        let chosen = match at {
            At::Time(time) => manifest.at <= time,
            At::Position(position) => manifest.position <= position,
            At::Newest | At::Snapshot(_) => true,
        };
        if chosen {
            return Ok(manifest);
        }
    }
    Err(none())
}
