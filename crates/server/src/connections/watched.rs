//! A connection's bytes, with an eye on how long they take.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use leasehold_types::{Clock, Timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    alarm::Alarm,
    counters::{ConnectionCounters, Cut},
    pulse::Pulse,
};

/// How long a connection may wait for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// For a request's head, from its first byte, or from the connection's beginning.
    pub(super) head: Duration,
    /// For the next request.
    pub(super) next: Duration,
    /// For the peer to take any of what is answered.
    pub(super) stall: Duration,
}

/// What is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coming {
    /// The first byte of a request.
    Request,
    /// The rest of a head.
    Head,
    /// Whatever belongs to a request that has begun: whoever answers it bounds that.
    Body,
}

/// Anything that carries bytes, cut where they take too long.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    waits: Waits,
    pulse: Arc<Pulse>,
    counters: Arc<ConnectionCounters>,
    coming: Coming,
    /// How many requests had begun when that was last known.
    begun: u64,
    reading: Alarm,
    writing: Alarm,
}

impl<S> Watched<S> {
    pub(super) fn new(
        stream: S,
        waits: Waits,
        pulse: Arc<Pulse>,
        counters: Arc<ConnectionCounters>,
        (clock, timer): (&Arc<dyn Clock>, &Arc<dyn Timer>),
    ) -> Self {
        let alarm = || Alarm::new(Arc::clone(clock), Arc::clone(timer));
        let (mut reading, writing) = (alarm(), alarm());
        reading.set(waits.head);
        Self { stream, waits, pulse, counters, coming: Coming::Head, begun: 0, reading, writing }
    }

    /// Follows what the connection is at.
    fn look(&mut self) {
        let begun = self.pulse.begun();
        if begun != self.begun {
            self.begun = begun;
            self.coming = Coming::Body;
            self.reading.stop();
        }
        if self.coming == Coming::Body && !self.pulse.is_at_work() {
            self.coming = Coming::Request;
            self.reading.set(self.waits.next);
        }
    }

    fn arrived(&mut self) {
        self.pulse.use_it();
        if self.coming == Coming::Request {
            self.coming = Coming::Head;
            self.reading.set(self.waits.head);
        }
    }

    /// An answer that hyper has whole is on its way all the same: what comes next is waited for from its last byte on.
    fn wrote(&mut self, polled: &Poll<io::Result<usize>>) {
        if matches!(polled, Poll::Ready(Ok(1..))) {
            match self.coming {
                Coming::Request => self.reading.set(self.waits.next),
                Coming::Head => self.reading.set(self.waits.head),
                Coming::Body => {}
            }
        }
    }

    /// What a write, or anything that waits for one, came to.
    fn took<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.writing.stop();
            return polled;
        }
        if !self.writing.is_set() {
            self.writing.set(self.waits.stall);
        }
        std::task::ready!(self.writing.poll(cx));
        self.counters.cut(Cut::Stalled);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the answer was not taken")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = &mut *self;
        let before = buf.filled().len();
        let polled = Pin::new(&mut me.stream).poll_read(cx, buf);
        me.look();
        if polled.is_ready() {
            if buf.filled().len() > before {
                me.arrived();
            }
            return polled;
        }
        if me.writing.is_set() {
            // The client is waited for otherwise.
            return Poll::Pending;
        }
        std::task::ready!(me.reading.poll(cx));
        if me.coming == Coming::Head && me.pulse.is_used() {
            me.counters.cut(Cut::Head);
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request arrived")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(&polled);
        self.took(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(&polled);
        self.took(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.took(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.took(cx, polled)
    }
}
