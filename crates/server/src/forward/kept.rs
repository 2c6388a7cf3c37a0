//! A request's body that can be sent again: what has passed is kept as it passes, within a bound.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::{memory::Share, problem::Problem};

/// A body, read by one attempt at a time. Pieces are shared with whoever reads them, not copied.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Arc<Mutex<Source>>);

#[derive(Debug)]
struct Source {
    body: Body,
    /// How long the whole body is, as far as that is known.
    hint: SizeHint,
    bytes_max: usize,
    /// What keeping it is asked of.
    share: Share,
    /// Bytes that are kept without being asked for again.
    reserved: usize,
    /// What has passed; empty once it was too much.
    pieces: Vec<Bytes>,
    len: usize,
    is_lost: bool,
    has_ended: bool,
    /// Counts the attempts: only the latest one reads.
    attempt: u64,
    /// Whether the latest attempt was asked for any of it.
    is_touched: bool,
}

/// What one attempt reads: what was kept first, then what still comes.
struct Reader {
    source: Arc<Mutex<Source>>,
    attempt: u64,
    at: usize,
    hint: SizeHint,
    is_empty: bool,
}

impl Kept {
    pub(crate) fn new(body: Body, bytes_max: usize, share: Share) -> Self {
        let (hint, has_ended) = (body.size_hint(), body.is_end_stream());
        Self(Arc::new(Mutex::new(Source {
            body,
            hint,
            bytes_max,
            share,
            reserved: 0,
            pieces: Vec::new(),
            len: 0,
            is_lost: false,
            has_ended,
            attempt: 0,
            is_touched: false,
        })))
    }

    /// Reserves the memory for a body whose length is known, where all of it is kept. One of unknown length is reserved as it passes.
    pub(crate) fn reserve(&self) -> Result<(), Problem> {
        let mut source = lock(&self.0);
        if let Some(len) = source.hint.exact().and_then(|len| usize::try_from(len).ok())
            && len <= source.bytes_max
        {
            source.share.take(len as u64)?;
            source.reserved = len;
        }
        Ok(())
    }

    /// Whether all of it is known to be within the bound.
    pub(crate) fn fits(&self) -> bool {
        let source = lock(&self.0);
        source.hint.upper().is_some_and(|len| len <= source.bytes_max as u64)
    }

    /// The body for another attempt; `None` once too much of it has passed. An earlier attempt reads no more.
    pub(crate) fn reader(&self) -> Option<Body> {
        let mut source = lock(&self.0);
        if source.is_lost {
            return None;
        }
        source.attempt += 1;
        source.is_touched = false;
        let reader = Reader {
            attempt: source.attempt,
            at: 0,
            hint: source.hint,
            is_empty: source.has_ended && source.pieces.is_empty(),
            source: Arc::clone(&self.0),
        };
        Some(Body::new(reader))
    }

    /// Whether too much of it has passed to be sent again.
    pub(crate) fn is_lost(&self) -> bool {
        lock(&self.0).is_lost
    }

    /// Whether the latest attempt sent nothing of a body that is not empty: what was asked by it cannot have been executed.
    pub(crate) fn is_untouched(&self) -> bool {
        let source = lock(&self.0);
        let is_empty = source.pieces.is_empty() && (source.has_ended || source.body.is_end_stream());
        !source.is_touched && !is_empty
    }

    /// The bytes, where the whole body has passed and was kept.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        let source = lock(&self.0);
        if source.is_lost || !(source.has_ended || source.body.is_end_stream()) {
            return None;
        }
        let mut bytes = BytesMut::with_capacity(source.len);
        for piece in &source.pieces {
            bytes.extend_from_slice(piece);
        }
        Some(bytes.freeze())
    }
}

impl HttpBody for Reader {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let me = self.get_mut();
        let mut source = lock(&me.source);
        if source.attempt != me.attempt {
            return Poll::Ready(Some(Err(io::Error::other("another attempt reads the body"))));
        }
        source.is_touched = true;
        if let Some(piece) = source.pieces.get(me.at) {
            me.at += 1;
            return Poll::Ready(Some(Ok(Frame::data(piece.clone()))));
        }
        if source.has_ended {
            return Poll::Ready(None);
        }
        loop {
            let Some(frame) = std::task::ready!(Pin::new(&mut source.body).poll_frame(cx)) else {
                source.has_ended = true;
                return Poll::Ready(None);
            };
            let frame = frame.map_err(io::Error::other)?;
            // Trailers are between two ends of one connection.
            let Ok(piece) = frame.into_data() else { continue };
            source.len += piece.len();
            let more = source.len.saturating_sub(source.reserved);
            // What there is no memory for passes all the same: it is only not sent again.
            let fits = source.len <= source.bytes_max && (more == 0 || source.share.try_take(more as u64));
            if fits {
                source.reserved = source.reserved.max(source.len);
            }
            if source.is_lost || !fits {
                source.is_lost = true;
                source.pieces = Vec::new();
            } else {
                source.pieces.push(piece.clone());
                me.at += 1;
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

fn lock(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    // A panic of the body below leaves nothing that a later reader could mistake: it has not been counted yet.
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::BodyExt as _;

    use super::*;

    fn of(pieces: &[&'static str]) -> Body {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, io::Error>(Bytes::from_static(piece.as_bytes()))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    async fn all(body: Body) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn what_was_sent_is_sent_again_whole() {
        let kept = Kept::new(of(&["ab", "c", "de"]), 5, Share::uncounted());
        assert_eq!(all(kept.reader().unwrap()).await, "abcde");
        assert_eq!(all(kept.reader().unwrap()).await, "abcde");
        assert_eq!(kept.bytes().unwrap(), "abcde");
    }

    #[tokio::test]
    async fn an_attempt_that_read_a_part_is_followed_by_one_that_reads_all() {
        let kept = Kept::new(of(&["ab", "c", "de"]), 5, Share::uncounted());
        let mut first = kept.reader().unwrap();
        assert_eq!(first.frame().await.unwrap().unwrap().into_data().unwrap(), "ab");
        assert_eq!(kept.bytes(), None);
        assert!(!kept.is_untouched());
        let second = kept.reader().unwrap();
        assert!(kept.is_untouched(), "the second has read nothing yet");
        assert!(first.frame().await.unwrap().is_err(), "the one before reads no more");
        assert_eq!(all(second).await, "abcde");
    }

    #[tokio::test]
    async fn too_much_passes_once() {
        let kept = Kept::new(of(&["ab", "c", "de"]), 4, Share::uncounted());
        assert!(!kept.fits());
        assert_eq!(all(kept.reader().unwrap()).await, "abcde");
        assert!(kept.reader().is_none() && kept.bytes().is_none());
    }

    #[tokio::test]
    async fn a_length_that_is_known_is_told() {
        let kept = Kept::new(Body::from("abc"), 3, Share::uncounted());
        assert!(kept.fits());
        assert_eq!(kept.reader().unwrap().size_hint().exact(), Some(3));
        let none = Kept::new(Body::empty(), 3, Share::uncounted());
        assert!(!none.is_untouched() && none.fits() && none.reader().unwrap().is_end_stream());
        assert_eq!(all(none.reader().unwrap()).await, "");
    }
}
