//! A network between a client and a real server, whose failures a test chooses.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{Either, select};
use leasehold_types::Timer;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

const CHUNK_LEN: usize = 64 * 1024;
const CONNECTIONS_MAX: usize = 1_000;

/// Which exchange a fault waits for. It knows bytes and no protocol.
///
/// A client that sends on before it has its answers may meet the fault an answer early: name the answer too.
#[derive(Clone, Debug)]
pub struct Cue {
    request: Vec<u8>,
    answer: Vec<u8>,
    /// How many requests that are like it pass before. Counted down by the connections that meet them.
    before: usize,
}

impl Cue {
    /// The next request with these bytes in it, on whichever connection.
    #[must_use]
    pub fn request(bytes: impl AsRef<[u8]>) -> Self {
        Self { request: bytes.as_ref().to_vec(), answer: Vec::new(), before: 0 }
    }

    /// But only after so many others of the kind: how a test goes through the requests of an operation one by one.
    #[must_use]
    pub fn after(mut self, others: usize) -> Self {
        self.before = others;
        self
    }

    /// And then the first answer on the same connection with these bytes in it, such as the word by which a database says that it
    /// has executed; what is answered before passes.
    #[must_use]
    pub fn answer(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.answer = bytes.as_ref().to_vec();
        self
    }
}

/// What happens to one exchange.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The server executes and answers; the connection ends before the client has a byte of it.
    LoseAnswer,
    /// The connection ends when this many bytes from the beginning of the cue have gone to the server.
    CutRequest(usize),
    /// The request stops when this many bytes from the beginning of the cue have gone to the server, until the test lets it go. What the
    /// client had sent goes on then even if the client has given up: so a put comes late.
    HoldRequest(usize),
    /// The connection ends when this many bytes of the answer have gone to the client.
    CutAnswer(usize),
    /// The server has nothing of the request beyond what came before its cue; this is the answer, and the connection ends.
    AnswerInstead(Vec<u8>),
    /// The answer waits until the test lets it go.
    HoldAnswer,
    /// From here on the connection's answers pass `bytes` at a time, each after a `wait` of the timer. With a large number it is a delay.
    Slow {
        /// How many bytes pass at a time.
        bytes: usize,
        /// How long each time takes.
        wait: Duration,
        /// Whose time it is.
        timer: Arc<dyn Timer>,
    },
}

/// What a fault met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The request in which the cue was found, as far as it had come.
    pub request: Vec<u8>,
    /// What the server answered to it, as far as the fault let it: the end of it is what the client did not get.
    pub answer: Vec<u8>,
}

/// A fault that waits for its cue, or has met it. Dropping it lets what is held go; a fault that was not met stays.
#[derive(Debug)]
pub struct Planned {
    met: watch::Receiver<bool>,
    release: watch::Sender<bool>,
    exchange: Arc<Mutex<Exchange>>,
}

impl Planned {
    /// Completes once the fault has happened, or the answer is held.
    ///
    /// # Panics
    /// If the proxy is dropped before.
    pub async fn met(&self) {
        let mut met = self.met.clone();
        met.wait_for(|met| *met).await.expect("the fault is met before its proxy is gone");
    }

    /// Whether the fault has happened.
    #[must_use]
    pub fn is_met(&self) -> bool {
        *self.met.borrow()
    }

    /// The bytes that it met, for a test that knows the protocol: what was executed, and what of it was lost.
    #[must_use]
    pub fn exchange(&self) -> Exchange {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets what is held go.
    pub fn release(self) {
        self.release.send_replace(true);
    }
}

/// A proxy on loopback before one server, for any protocol over TCP.
///
/// Faults are one-shot and met in the order in which they were planned. When this is dropped, its connections end.
#[derive(Debug)]
pub struct FaultProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    /// Planned by the test, taken by the connection that meets the cue.
    faults: Mutex<Vec<Pending>>,
    /// Counts the times at which all connections had to end.
    cuts: watch::Sender<u64>,
    is_down: watch::Sender<bool>,
    accepted: AtomicUsize,
    open: AtomicUsize,
}

struct Pending {
    cue: Cue,
    fault: Fault,
    met: watch::Sender<bool>,
    released: watch::Receiver<bool>,
    exchange: Arc<Mutex<Exchange>>,
}

impl Pending {
    fn note(&self, note: impl FnOnce(&mut Exchange)) {
        note(&mut self.exchange.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Until the test lets go what is held. An error says that it dropped its side, which lets go as well.
    async fn held(&mut self) {
        let _ = self.released.wait_for(|is_released| *is_released).await;
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("cue", &self.cue).field("fault", &self.fault).finish_non_exhaustive()
    }
}

impl FaultProxy {
    /// A proxy before `target`, without any fault yet.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            faults: Mutex::default(),
            cuts: watch::Sender::new(0),
            is_down: watch::Sender::new(false),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { addr, shared, accepting })
    }

    /// Where the client is to connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Lets `fault` happen to the next exchange that meets `cue`.
    #[must_use = "dropping it lets what is held go"]
    pub fn plan(&self, cue: Cue, fault: Fault) -> Planned {
        let (met, is_met) = watch::channel(false);
        let (release, released) = watch::channel(false);
        let exchange = Arc::default();
        self.shared.faults().push(Pending { cue, fault, met, released, exchange: Arc::clone(&exchange) });
        Planned { met: is_met, release, exchange }
    }

    /// Ends every connection, and each new one at once, or lets new ones through again.
    pub fn down(&self, is_down: bool) {
        self.shared.is_down.send_replace(is_down);
        if is_down {
            self.cut();
        }
    }

    /// Ends every connection that is open now.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many connections there were, those that ended at once included.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Forgets the faults that have not met their cue.
    pub fn forget_faults(&self) {
        self.shared.faults().clear();
    }

    /// How many faults have not met their cue.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.shared.faults().len()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first fault whose cue is in what a read added to `before` bytes, with the place where the cue begins.
    fn take(&self, seen: &[u8], before: usize) -> Option<(Pending, usize)> {
        let mut faults = self.faults();
        let met = faults.iter_mut().enumerate().find_map(|(index, pending)| {
            // What was seen already was counted already.
            let wanted = &pending.cue.request;
            let from = (before + 1).saturating_sub(wanted.len());
            let at = from + find(&seen[from.min(seen.len())..], wanted)?;
            if pending.cue.before > 0 {
                pending.cue.before -= 1;
                return None;
            }
            Some((index, at))
        });
        let (index, at) = met?;
        Some((faults.remove(index), at))
    }

    fn longest_cue(&self) -> usize {
        self.faults().iter().map(|pending| pending.cue.request.len()).max().unwrap_or(0)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        if *shared.is_down.borrow() || shared.open.load(Ordering::SeqCst) >= CONNECTIONS_MAX {
            continue;
        }
        shared.open.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let mut cuts = shared.cuts.subscribe();
            let passing = std::pin::pin!(pass(client, &shared));
            let cut = std::pin::pin!(cuts.changed());
            // Whichever ends first, both sides' streams go with it.
            select(passing, cut).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// One connection, until one side ends it or a fault does.
async fn pass(client: TcpStream, shared: &Shared) {
    let Ok(server) = TcpStream::connect(shared.target).await else { return };
    // Small writes must not wait for each other: tests measure what the product does.
    if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let met = Mutex::new(None);
    let to_client = ToClient::new(to_client);
    let requests = std::pin::pin!(pass_requests(from_client, to_server, &to_client, shared, &met));
    let answers = std::pin::pin!(pass_answers(from_server, &to_client, &met));
    // An end of either stream by itself is passed on; an end by a fault is the end of both.
    match select(requests, answers).await {
        Either::Left((Ended::ByItself, answers)) => {
            answers.await;
        }
        Either::Right((Ended::ByItself, requests)) => {
            requests.await;
        }
        Either::Left((Ended::ByFault, _)) | Either::Right((Ended::ByFault, _)) => {}
    }
}

/// Written by the server's side, and by whoever answers instead of it.
type ToClient = tokio::sync::Mutex<OwnedWriteHalf>;

#[derive(PartialEq, Eq)]
enum Ended {
    ByItself,
    ByFault,
}

async fn pass_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    to_client: &ToClient,
    shared: &Shared,
    met: &Mutex<Option<Pending>>,
) -> Ended {
    let mut chunk = vec![0; CHUNK_LEN];
    // The end of what went before, so that a cue across two reads is seen.
    let mut seen = Vec::new();
    let mut left_until_cut: Option<(usize, Pending)> = None;
    loop {
        let len = match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(len) => len,
        };
        let before = seen.len();
        seen.extend_from_slice(&chunk[..len]);
        if left_until_cut.is_none()
            && let Some((pending, at)) = shared.take(&seen, before)
        {
            pending.note(|exchange| exchange.request.clone_from(&seen));
            match &pending.fault {
                Fault::CutRequest(after) | Fault::HoldRequest(after) => {
                    left_until_cut = Some(((at + after).saturating_sub(before), pending));
                }
                Fault::AnswerInstead(answer) => {
                    drop(to.write_all(&chunk[..at.saturating_sub(before)]).await);
                    drop(to_client.lock().await.write_all(answer).await);
                    pending.met.send_replace(true);
                    // What else the client sends is taken from it, so that it comes to read its answer.
                    while let Ok(1..) = from.read(&mut chunk).await {}
                    return Ended::ByFault;
                }
                // Before the request goes on: its answer must not be faster.
                _ => *met.lock().unwrap_or_else(PoisonError::into_inner) = Some(pending),
            }
            seen.clear();
        }
        if let Some((left, pending)) = &mut left_until_cut {
            let passing = len.min(*left);
            *left -= passing;
            // The end is what counts, whether the server took the bytes or not.
            drop(to.write_all(&chunk[..passing]).await);
            if *left > 0 {
                continue;
            }
            drop(to.flush().await);
            pending.met.send_replace(true);
            if !matches!(pending.fault, Fault::HoldRequest(_)) {
                return Ended::ByFault;
            }
            pending.held().await;
            left_until_cut = None;
            if to.write_all(&chunk[passing..len]).await.is_err() {
                break;
            }
            continue;
        }
        let kept = shared.longest_cue().saturating_sub(1).min(seen.len());
        seen.drain(..seen.len() - kept);
        if to.write_all(&chunk[..len]).await.is_err() {
            break;
        }
    }
    drop(to.shutdown().await);
    Ended::ByItself
}

async fn pass_answers(mut from: OwnedReadHalf, to: &ToClient, met: &Mutex<Option<Pending>>) -> Ended {
    let mut chunk = vec![0; CHUNK_LEN];
    let mut seen = Vec::new();
    let mut acting: Option<Pending> = None;
    let mut passed = 0;
    loop {
        let len = match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(len) => len,
        };
        if let Some(pending) = &acting {
            pending.note(|exchange| exchange.answer.extend_from_slice(&chunk[..len]));
        } else {
            let waiting = met.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(pending) = waiting {
                pending.note(|exchange| exchange.answer.extend_from_slice(&chunk[..len]));
                seen.extend_from_slice(&chunk[..len]);
                if find(&seen, &pending.cue.answer).is_some() {
                    seen.clear();
                    passed = 0;
                    acting = Some(pending);
                } else {
                    let kept = pending.cue.answer.len().saturating_sub(1).min(seen.len());
                    seen.drain(..seen.len() - kept);
                    met.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(pending);
                }
            }
        }
        let answer = &chunk[..len];
        let is_open = match &mut acting {
            None => to.lock().await.write_all(answer).await.is_ok(),
            Some(Pending { fault: Fault::LoseAnswer, met, .. }) => {
                met.send_replace(true);
                return Ended::ByFault;
            }
            Some(Pending { fault: Fault::CutAnswer(after), met, .. }) => {
                let passing = len.min(*after - passed);
                passed += passing;
                let is_open = to.lock().await.write_all(&answer[..passing]).await.is_ok();
                if passed == *after || !is_open {
                    drop(to.lock().await.shutdown().await);
                    met.send_replace(true);
                    return Ended::ByFault;
                }
                is_open
            }
            Some(Pending { fault: Fault::Slow { bytes, wait, timer }, met, .. }) => {
                met.send_replace(true);
                let mut is_open = true;
                for part in answer.chunks((*bytes).max(1)) {
                    timer.sleep(*wait).await;
                    is_open = is_open && to.lock().await.write_all(part).await.is_ok();
                }
                is_open
            }
            // Held; what happens to the request never comes here.
            Some(pending) => {
                pending.met.send_replace(true);
                pending.held().await;
                acting = None;
                to.lock().await.write_all(answer).await.is_ok()
            }
        };
        if !is_open {
            break;
        }
    }
    drop(to.lock().await.shutdown().await);
    Ended::ByItself
}

/// Where `wanted` begins in `bytes`. Nothing is everywhere.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualTimer;

    /// A server that answers each line with `ok <line>`, and tells how many it answered.
    async fn server() -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (addr, executed) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&executed);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    let mut line = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        line.push(byte);
                        if byte == b'\n' {
                            count.fetch_add(1, Ordering::SeqCst);
                            let answer = [b"ok ", line.as_slice()].concat();
                            stream.write_all(&answer).await.unwrap();
                            line.clear();
                        }
                    }
                });
            }
        });
        (addr, executed)
    }

    /// What the client reads until it has `len` bytes or the end.
    async fn ask(stream: &mut TcpStream, line: &str, len: usize) -> String {
        if stream.write_all(line.as_bytes()).await.is_err() {
            return String::new();
        }
        let mut answer = Vec::new();
        let mut byte = [0];
        while answer.len() < len {
            match stream.read(&mut byte).await {
                Ok(1) => answer.push(byte[0]),
                _ => break,
            }
        }
        String::from_utf8(answer).unwrap()
    }

    async fn connected() -> (FaultProxy, TcpStream, Arc<AtomicUsize>) {
        let (addr, executed) = server().await;
        let proxy = FaultProxy::start(addr).await.unwrap();
        let stream = TcpStream::connect(proxy.addr()).await.unwrap();
        (proxy, stream, executed)
    }

    #[tokio::test]
    async fn without_a_fault_everything_passes() {
        let (proxy, mut stream, _) = connected().await;
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok one\n");
        assert_eq!(ask(&mut stream, "two\n", 7).await, "ok two\n");
        assert_eq!((proxy.accepted(), proxy.pending()), (1, 0));
    }

    #[tokio::test]
    async fn a_lost_answer_was_executed() {
        let (proxy, mut stream, executed) = connected().await;
        let lost = proxy.plan(Cue::request("two"), Fault::LoseAnswer);
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok one\n");
        assert!(!lost.is_met());
        assert_eq!(ask(&mut stream, "two\n", 7).await, "");
        lost.met().await;
        assert_eq!(executed.load(Ordering::SeqCst), 2);
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(ask(&mut stream, "two\n", 7).await, "ok two\n");
    }

    #[tokio::test]
    async fn a_cue_across_two_reads_is_seen() {
        let (proxy, mut stream, executed) = connected().await;
        let lost = proxy.plan(Cue::request("o t"), Fault::LoseAnswer);
        // The answer to the first line says that the proxy has read the first half.
        assert_eq!(ask(&mut stream, "one\ntwo", 7).await, "ok one\n");
        assert_eq!(ask(&mut stream, " three\n", 7).await, "");
        assert!(lost.is_met());
        assert_eq!(executed.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_fault_can_come_after_others_of_its_kind() {
        let (proxy, mut stream, executed) = connected().await;
        let lost = proxy.plan(Cue::request("line").after(2), Fault::LoseAnswer);
        assert_eq!(ask(&mut stream, "line\n", 8).await, "ok line\n");
        assert_eq!(ask(&mut stream, "line\n", 8).await, "ok line\n");
        assert!(!lost.is_met());
        assert_eq!(ask(&mut stream, "line\n", 8).await, "");
        assert!(lost.is_met());
        assert_eq!(executed.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn an_answer_can_be_the_cue() {
        let (proxy, mut stream, executed) = connected().await;
        let lost = proxy.plan(Cue::request("one").answer("two"), Fault::LoseAnswer);
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok one\n");
        assert_eq!(ask(&mut stream, "two\n", 7).await, "");
        assert!(lost.is_met());
        assert_eq!(executed.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_cut_request_is_not_executed_and_a_cut_answer_is_short() {
        let (proxy, mut stream, executed) = connected().await;
        let cut = proxy.plan(Cue::request("one"), Fault::CutRequest(2));
        assert_eq!(ask(&mut stream, "one\n", 7).await, "");
        assert!(cut.is_met());
        assert_eq!(executed.load(Ordering::SeqCst), 0);
        let cut = proxy.plan(Cue::request("one"), Fault::CutAnswer(4));
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok o");
        cut.met().await;
    }

    #[tokio::test]
    async fn a_held_answer_comes_when_it_is_let_go() {
        let (proxy, mut stream, executed) = connected().await;
        let held = proxy.plan(Cue::request("one"), Fault::HoldAnswer);
        let asking = tokio::spawn(async move { ask(&mut stream, "one\n", 7).await });
        held.met().await;
        assert_eq!(executed.load(Ordering::SeqCst), 1);
        assert!(!asking.is_finished());
        held.release();
        assert_eq!(asking.await.unwrap(), "ok one\n");
    }

    #[tokio::test]
    async fn a_held_request_stops_in_its_middle_and_goes_on_when_it_is_let_go() {
        let (proxy, mut stream, executed) = connected().await;
        let held = proxy.plan(Cue::request("two"), Fault::HoldRequest(2));
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok one\n");
        let asking = tokio::spawn(async move { ask(&mut stream, "two\n", 7).await });
        held.met().await;
        assert_eq!(executed.load(Ordering::SeqCst), 1);
        held.release();
        assert_eq!(asking.await.unwrap(), "ok two\n");
        assert_eq!(executed.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn an_answer_that_is_not_the_servers_ends_the_connection() {
        let (proxy, mut stream, executed) = connected().await;
        let busy = proxy.plan(Cue::request("two"), Fault::AnswerInstead(b"busy\n".to_vec()));
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok one\n");
        assert_eq!(ask(&mut stream, "two\n", 5).await, "busy\n");
        assert!(busy.is_met());
        stream.shutdown().await.unwrap();
        assert_eq!(ask(&mut stream, "", 1).await, "", "it has ended");
        assert_eq!(executed.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_was_lost_is_told() {
        let (proxy, mut stream, _) = connected().await;
        let lost = proxy.plan(Cue::request("two"), Fault::LoseAnswer);
        assert_eq!(lost.exchange(), Exchange::default());
        ask(&mut stream, "one\n", 7).await;
        ask(&mut stream, "two\n", 7).await;
        let Exchange { request, answer } = lost.exchange();
        assert!(request.ends_with(b"two\n") && answer == b"ok two\n", "{request:?} {answer:?}");
    }

    #[tokio::test]
    async fn a_slow_answer_takes_its_timers_time() {
        let (proxy, mut stream, _) = connected().await;
        let timer = ManualTimer::new();
        let wait = Duration::from_secs(1);
        let slow = Fault::Slow { bytes: 4, wait, timer: Arc::new(timer.clone()) };
        drop(proxy.plan(Cue::request("one"), slow));
        let asking = tokio::spawn(async move { ask(&mut stream, "one\n", 7).await });
        for _ in 0..2 {
            timer.until_sleepers(1).await;
            assert!(!asking.is_finished());
            timer.elapse(wait);
        }
        assert_eq!(asking.await.unwrap(), "ok one\n");
    }

    #[tokio::test]
    async fn while_it_is_down_nothing_passes() {
        let (proxy, mut stream, _) = connected().await;
        assert_eq!(ask(&mut stream, "one\n", 7).await, "ok one\n");
        proxy.down(true);
        assert_eq!(ask(&mut stream, "two\n", 7).await, "");
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(ask(&mut stream, "two\n", 7).await, "");
        proxy.down(false);
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(ask(&mut stream, "two\n", 7).await, "ok two\n");
    }
}
