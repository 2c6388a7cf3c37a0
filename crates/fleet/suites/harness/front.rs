//! What stands between clients and replicas where there is no load balancer: a Service, as Kubernetes has it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_testkit::pass;
use leasehold_types::{Clock as _, SystemClock};
use reqwest::{Client, RequestBuilder, Response};

use super::{
    clients::http,
    launcher::{Front, Launcher},
};

/// How often replicas are asked whether they are ready. A pod's probe is slower, and its preStop hook waits for that.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long one look may take, and how long who finds nobody to ask looks on.
const LOOK_MAX: Duration = Duration::from_secs(1);
const NOBODY_MAX: Duration = Duration::from_secs(5);

/// Where clients send, and to which replicas.
#[derive(Clone)]
pub(crate) struct Door {
    shared: Arc<Shared>,
}

struct Shared {
    http: Client,
    front: Front,
    /// By name, the endpoint of who is sent to.
    ready: Mutex<BTreeMap<&'static str, String>>,
    /// Who is about to be stopped: out of the Service at once, whatever it says.
    leaving: Mutex<Vec<&'static str>>,
    turn: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Door {
    /// A door to these replicas, which looks after them as long as it is there.
    pub(crate) fn new(launcher: &Arc<dyn Launcher>, replicas: &[&'static str]) -> Self {
        let shared = Arc::new(Shared {
            http: http(),
            front: launcher.front(),
            ready: Mutex::default(),
            leaving: Mutex::default(),
            turn: AtomicUsize::new(0),
        });
        if matches!(shared.front, Front::Service) {
            for &replica in replicas {
                let (shared, endpoint) = (Arc::downgrade(&shared), launcher.endpoint(replica));
                tokio::spawn(async move {
                    while let Some(shared) = shared.upgrade() {
                        shared.look(replica, &endpoint).await;
                        drop(shared);
                        pass(LOOK_EVERY).await;
                    }
                });
            }
        }
        Self { shared }
    }

    /// Sends nothing to this replica any more: its pod is terminating.
    pub(crate) fn leave(&self, replica: &'static str) {
        lock(&self.shared.leaving).push(replica);
        lock(&self.shared.ready).remove(replica);
    }

    /// Sends to it again, once it is ready.
    pub(crate) fn come(&self, replica: &'static str) {
        lock(&self.shared.leaving).retain(|leaving| *leaving != replica);
    }

    /// Sends what `build` makes of a base URL. Where nobody listens nothing was sent, and the next replica is asked; whatever else
    /// goes wrong is the client's.
    pub(crate) async fn send(
        &self,
        build: impl Fn(&Client, &str) -> RequestBuilder + Send + Sync,
    ) -> Result<Response, reqwest::Error> {
        let began = SystemClock.now();
        loop {
            let base = self.base();
            let sent = match &base {
                Some(base) => Some(build(&self.shared.http, base).send().await),
                None => None,
            };
            let over = SystemClock.now().since(began) > NOBODY_MAX;
            match sent {
                Some(Err(error)) if error.is_connect() && !over => {}
                Some(sent) => return sent,
                // Nobody is ready: told as what it comes to, a connection that cannot be made.
                None if over => return build(&self.shared.http, "http://127.0.0.1:1").send().await,
                None => {}
            }
            pass(LOOK_EVERY / 4).await;
        }
    }

    fn base(&self) -> Option<String> {
        match &self.shared.front {
            Front::Balancer(base) => Some(base.clone()),
            Front::Service => {
                let ready = lock(&self.shared.ready);
                let turn = self.shared.turn.fetch_add(1, Ordering::Relaxed);
                let which = turn.checked_rem(ready.len())?;
                ready.values().nth(which).cloned()
            }
        }
    }
}

impl Shared {
    async fn look(&self, replica: &'static str, endpoint: &str) {
        let answer = self.http.get(format!("{endpoint}/readyz")).timeout(LOOK_MAX).send().await;
        let is_ready = answer.is_ok_and(|answer| answer.status().is_success());
        let leaving = lock(&self.leaving);
        let mut ready = lock(&self.ready);
        if is_ready && !leaving.contains(&replica) {
            ready.insert(replica, endpoint.to_owned());
        } else {
            ready.remove(replica);
        }
    }
}
