//! A fleet under test.

use std::{env, sync::Arc, time::Duration};

use leasehold_proof::{Answered, Client, recorder::Recorder};
use leasehold_testkit::{PATIENCE, eventually, pass};
use leasehold_types::{LeaseKey, Moment, SystemClock};
use reqwest::Response;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    clients::{self, http, patient},
    compose::Compose,
    front::Door,
    launcher::{Cut, Ended, Launcher, Settings, Unsupported},
    load::now,
    processes::Processes,
};

/// Which launcher is asked for: `processes`, where nothing is said, or `compose`.
const LAUNCHER: &str = "LEASEHOLD_FLEET_LAUNCHER";
/// The time to live of a lease, where a suite says nothing else.
pub(crate) const TTL: Duration = Duration::from_secs(6);
/// All that there may be.
pub(crate) const REPLICAS: [&str; 3] = ["a", "b", "c"];
/// How long a pod that terminates serves on before it is told (preStop), so that nobody is sent to it when it is.
const PRE_STOP: Duration = Duration::from_secs(1);
/// The longest time that anything here is waited for.
const START_MAX: Duration = Duration::from_secs(90);
/// How much longer than its grace period a replica may take: the end of its connections, and a busy machine.
const END_MAX: Duration = Duration::from_secs(90);

/// Replicas, what stands in front of them, and what everybody was told.
pub(crate) struct Fleet {
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) door: Door,
    pub(crate) recorder: Arc<Recorder>,
    settings: Settings,
    http: reqwest::Client,
}

impl Fleet {
    /// A fleet of which nobody runs yet, with settings that are shorter than the defaults.
    pub(crate) async fn new(suite: &str) -> Self {
        let launcher: Arc<dyn Launcher> = match env::var(LAUNCHER).as_deref() {
            Ok("compose") => Arc::new(Compose::up(suite).await),
            Err(_) | Ok("" | "processes") => Arc::new(Processes::on_loopback(suite, &REPLICAS)),
            Ok(other) => panic!("{LAUNCHER}: `{other}` is neither `processes` nor `compose`"),
        };
        Self::by(launcher)
    }

    /// One whose connections can be cut.
    pub(crate) async fn that_can_be_cut(suite: &str) -> Result<Self, Unsupported> {
        if env::var(LAUNCHER).as_deref() == Ok("compose") {
            let compose = Compose::up(suite).await;
            return compose.can_be_cut().await.map(|()| Self::by(Arc::new(compose)));
        }
        Processes::in_namespaces(suite, &REPLICAS).map(|processes| Self::by(Arc::new(processes)))
    }

    fn by(launcher: Arc<dyn Launcher>) -> Self {
        let door = Door::new(&launcher, &REPLICAS);
        let settings = Settings::default().with(&[
            ("LEASEHOLD_TTL", &format!("{}s", TTL.as_secs())),
            ("LEASEHOLD_MARGIN", "1500ms"),
            ("LEASEHOLD_RENEW_EVERY", "1500ms"),
            ("LEASEHOLD_SNAPSHOT__EVERY", "5s"),
            ("LEASEHOLD_GRACE_PERIOD", "60s"),
            ("LEASEHOLD_PLACEMENT__MOVES_PAUSE", "250ms"),
            ("LEASEHOLD_LOG__FILTER", "info,leasehold_server=debug"),
        ]);
        let recorder = Arc::new(Recorder::new(Arc::new(SystemClock)));
        Self { launcher, door, recorder, settings, http: http() }
    }

    /// The settings of every replica, where a suite says nothing else.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Starts these replicas and waits until they are ready.
    pub(crate) async fn start(&self, replicas: &[&'static str]) {
        // The first one makes the tables and the container.
        for replica in replicas {
            self.start_with(replica, &self.settings).await;
        }
    }

    /// Starts one and waits until it is ready.
    pub(crate) async fn start_with(&self, replica: &'static str, settings: &Settings) {
        self.launcher.start(replica, settings).await;
        self.until_ready(replica).await;
        self.door.come(replica);
    }

    /// Waits until the replica itself says that it is ready.
    pub(crate) async fn until_ready(&self, replica: &'static str) {
        let what = format!("{replica} is ready");
        eventually(START_MAX, &what, async || self.is_ready(replica).await).await;
    }

    pub(crate) async fn is_ready(&self, replica: &'static str) -> bool {
        let url = format!("{}/readyz", self.launcher.endpoint(replica));
        let answer = self.http.get(url).timeout(Duration::from_secs(5)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Ends one as Kubernetes does: out of the Service, a while later the signal, and then it is waited for.
    pub(crate) async fn stop(&self, replica: &'static str) -> Ended {
        self.stop_timed(replica).await.0
    }

    /// The same, with the time from the signal on.
    pub(crate) async fn stop_timed(&self, replica: &'static str) -> (Ended, Duration) {
        self.door.leave(replica);
        pass(PRE_STOP).await;
        let told_at = now();
        self.launcher.signal(replica, Signal::TERM).await;
        let ended = self.launcher.ended(replica, END_MAX).await;
        (ended, now().since(told_at))
    }

    /// Ends one, which has to hand over everything, and starts it again with these settings.
    pub(crate) async fn roll(&self, replica: &'static str, settings: &Settings) {
        let ended = self.stop(replica).await;
        assert_eq!(ended.code, Some(0), "{replica} left something behind: {}", last_lines(&ended.said));
        self.start_with(replica, settings).await;
    }

    /// Takes one away as a crash does. Answers when that was.
    pub(crate) async fn kill(&self, replica: &'static str) -> Moment {
        self.launcher.signal(replica, Signal::KILL).await;
        let killed_at = now();
        let ended = self.launcher.ended(replica, END_MAX).await;
        assert_ne!(ended.code, Some(0), "{replica} was killed");
        killed_at
    }

    /// Asks one replica itself.
    pub(crate) async fn ask(&self, replica: &'static str, path: &str) -> Value {
        let url = format!("{}{path}", self.launcher.endpoint(replica));
        let answer = patient(self.http.get(url), PATIENCE).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Appends an event to a tenant at this base URL.
    pub(crate) async fn append_at(
        &self,
        base: &str,
        tenant: &LeaseKey,
        id: &str,
        patience: Duration,
    ) -> Result<Response, reqwest::Error> {
        let event = json!({ "kind": "fleet.write", "actor": "fleet", "subject_id": id, "idem_key": id, "payload": { "id": id } });
        let url = format!("{base}{}/events", clients::path(tenant));
        patient(self.http.post(url).json(&event), patience).send().await
    }

    /// Who holds the tenant, and in which epoch; asked through `replica`.
    pub(crate) async fn owner(
        &self,
        replica: &'static str,
        tenant: &LeaseKey,
    ) -> Option<(&'static str, u64)> {
        let status = self.ask(replica, &clients::path(tenant)).await;
        let owner = status["owner"].as_str()?;
        let owner = REPLICAS.into_iter().find(|one| *one == owner)?;
        Some((owner, status["epoch"].as_u64()?))
    }

    /// How many tenants each replica has open, as `replica` sees it, and the most that one may have.
    pub(crate) async fn shares(&self, replica: &'static str) -> (Vec<(String, u64)>, u64) {
        let fleet = self.ask(replica, "/v1/replicas").await;
        let there = fleet["replicas"].as_array().into_iter().flatten().filter(|one| one["alive"] == true);
        let share = |one: &Value| {
            (
                one["replica"].as_str().unwrap_or_default().to_owned(),
                one["open_tenants"].as_u64().unwrap_or(0),
            )
        };
        (there.map(share).collect(), fleet["share_max"].as_u64().unwrap_or(0))
    }

    /// A caller of one replica who tells the recorder.
    pub(crate) fn caller(&self, replica: &'static str, tenant: &LeaseKey) -> Client {
        Client::new(&self.launcher.endpoint(replica), tenant, Arc::clone(&self.recorder)).unwrap()
    }

    /// The writes in a tenant's history, judged.
    pub(crate) async fn history(&self, replica: &'static str, tenant: &LeaseKey) -> Vec<String> {
        match self.caller(replica, tenant).read().await {
            Ok(Answered::Done((_, ids))) => ids,
            other => panic!("{tenant}: {other:?}"),
        }
    }

    /// The value of a metric that has no labels, or the sum of all of its series.
    pub(crate) async fn metric(&self, replica: &'static str, name: &str) -> f64 {
        let url = format!("{}/metrics", self.launcher.endpoint(replica));
        let text = patient(self.http.get(url), PATIENCE).send().await.unwrap().text().await.unwrap();
        let series = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            (series.split('{').next() == Some(name)).then(|| value.parse::<f64>().unwrap())
        });
        series.sum()
    }

    pub(crate) async fn cut(&self, cut: Cut) {
        self.launcher.cut(cut).await.unwrap();
    }

    pub(crate) async fn heal(&self, cut: Cut) {
        self.launcher.heal(cut).await;
    }
}

/// What a replica said last.
pub(crate) fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().rev().take(12).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
