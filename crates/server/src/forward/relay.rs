//! Another replica's answer on its way to the client: piece by piece, never as a whole.

use std::{io, sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use leasehold_types::Timer;
use serde_json::json;
use tokio::sync::watch;

use super::ending::{Ending, reached};
use crate::bounds::Counted;

/// What a relayed body needs beside the body.
pub(crate) struct Relaying {
    pub(crate) timer: Arc<dyn Timer>,
    /// How long nothing may come before the other replica counts as gone.
    pub(crate) idle_max: Duration,
    /// Its place among the requests at work, or the followers; given back with the last piece.
    pub(crate) _place: Counted,
    /// Says that this replica's connections end.
    pub(crate) ending: watch::Receiver<Ending>,
    /// Whether it is a stream of events.
    pub(crate) is_stream: bool,
}

struct Relayed {
    incoming: Incoming,
    relaying: Relaying,
    messages: Messages,
    has_ended: bool,
}

/// The body of the answer to the client.
pub(crate) fn relayed(incoming: Incoming, relaying: Relaying) -> Body {
    let relayed = Relayed { incoming, relaying, messages: Messages::default(), has_ended: false };
    Body::from_stream(stream::unfold(relayed, next).fuse())
}

async fn next(mut relayed: Relayed) -> Option<(io::Result<Bytes>, Relayed)> {
    if relayed.has_ended {
        return None;
    }
    let Relaying { timer, idle_max, ending, is_stream, .. } = &mut relayed.relaying;
    let broken = loop {
        let ends = reached(ending, Ending::Streams);
        let frame = tokio::select! {
            biased;
            frame = relayed.incoming.frame() => frame,
            () = ends, if *is_stream => break io::Error::other("this replica ends"),
            () = timer.sleep(*idle_max) => break io::Error::from(io::ErrorKind::TimedOut),
        };
        match frame {
            None => return None,
            Some(Err(error)) => break io::Error::other(error),
            Some(Ok(frame)) => {
                // Trailers are between two ends of one connection.
                let Ok(piece) = frame.into_data() else { continue };
                if *is_stream {
                    relayed.messages.pass(&piece);
                }
                return Some((Ok(piece), relayed));
            }
        }
    };
    relayed.has_ended = true;
    // In the middle of a message the connection breaks instead: the client would take what comes next for the rest of it.
    let last = if *is_stream { relayed.messages.moved() } else { None };
    Some((last.ok_or(broken), relayed))
}

/// The longest line that is looked at: an id is shorter.
const LINE_LEN_MAX: usize = 80;

/// Where in a stream of events the client is.
#[derive(Debug, Default)]
struct Messages {
    /// The line that has begun, as far as it is looked at.
    line: Vec<u8>,
    /// Whether a message has begun and not ended.
    is_inside: bool,
    /// The id of the message that has begun.
    coming: Option<String>,
    /// The id of the last whole message that had one.
    seen: Option<String>,
}

impl Messages {
    fn pass(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            self.line.extend(text.iter().take(LINE_LEN_MAX.saturating_sub(self.line.len())));
            self.is_inside = true;
            if !ends {
                continue;
            }
            if self.line.is_empty() {
                self.is_inside = false;
                self.seen = self.coming.take().or(self.seen.take());
            } else if let Some(id) = self.line.strip_prefix(b"id:") {
                self.coming = Some(String::from_utf8_lossy(id).trim().to_owned());
            }
            self.line.clear();
        }
    }

    /// The last message of a stream that has to be taken up elsewhere; `None` in the middle of another one.
    fn moved(&self) -> Option<Bytes> {
        if self.is_inside {
            return None;
        }
        let data = json!({ "code": "draining", "after": self.seen });
        Some(format!("event: moved\nretry: 1000\ndata: {data}\n\n").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_ended_between_two_messages_with_the_last_id() {
        let mut messages = Messages::default();
        let text =
            |messages: &Messages| messages.moved().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        assert!(text(&messages).unwrap().contains("\"after\":null"));
        messages.pass(b"id: 1-7\ndata: {\"po");
        assert_eq!(text(&messages), None);
        messages.pass(&[b'x'; 500]);
        messages.pass(b"\n");
        assert_eq!(text(&messages), None);
        messages.pass(b"\n");
        assert!(text(&messages).unwrap().contains("\"after\":\"1-7\""));
        messages.pass(b": \n\nid: 1-");
        assert_eq!(text(&messages), None);
        messages.pass(b"8\n");
        messages.pass(b"data: {}\n\n");
        assert!(text(&messages).unwrap().starts_with("event: moved\n"));
        assert!(text(&messages).unwrap().contains("\"after\":\"1-8\""));
    }
}
