//! What starts and disturbs replicas: processes or containers.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use rustix::process::Signal;

/// A replica's configuration beside what its launcher needs: variables and their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) variables: BTreeMap<&'static str, String>,
    /// Whether it is the build before this one.
    pub(crate) previous_build: bool,
}

impl Settings {
    /// These, and the rest as it is.
    pub(crate) fn with(mut self, variables: &[(&'static str, &str)]) -> Self {
        self.variables.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        self
    }
}

/// What ends a connection of a replica that is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Postgres,
    Store,
    Replica(&'static str),
}

/// Packets that do not arrive any more, in one direction. Nobody is told: nothing is refused, all of it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) replica: &'static str,
    pub(crate) end: End,
    /// From the replica to the end, or the other way round.
    pub(crate) outward: bool,
}

/// How a replica ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
    /// Its standard error stream, since it was started last.
    pub(crate) said: String,
}

/// What a launcher cannot do, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported(pub(crate) String);

impl Unsupported {
    /// Says that `suite` is an exception, in words that a reader of the output finds.
    pub(crate) fn tell(&self, suite: &str) {
        println!("NAMED EXCEPTION: {suite}: {}", self.0);
    }
}

/// Where clients go.
#[derive(Clone, Debug)]
pub(crate) enum Front {
    /// To one of these replicas, as a Service of Kubernetes sends them: only to who is ready, and elsewhere where nobody listens.
    Service,
    /// To a load balancer.
    Balancer(String),
}

/// Starts and disturbs replicas. Names are those of `integration/compose.yaml`: a, b, c.
#[async_trait]
pub(crate) trait Launcher: Send + Sync {
    /// `processes` or `compose`.
    fn name(&self) -> &'static str;

    /// Starts a replica that does not run. It need not be ready, and need not answer, when this returns.
    async fn start(&self, replica: &'static str, settings: &Settings);

    /// Tells it.
    async fn signal(&self, replica: &'static str, signal: Signal);

    /// Waits until it is gone.
    async fn ended(&self, replica: &'static str, limit: Duration) -> Ended;

    /// Where this one replica is asked.
    fn endpoint(&self, replica: &'static str) -> String;

    /// Where clients go.
    fn front(&self) -> Front;

    /// How many file descriptors it has open.
    fn descriptors(&self, replica: &'static str) -> Result<usize, Unsupported>;

    /// Whether there is a build before this one.
    fn has_previous_build(&self) -> Result<(), Unsupported>;

    /// Cuts a connection.
    async fn cut(&self, cut: Cut) -> Result<(), Unsupported>;

    /// Takes the cut back.
    async fn heal(&self, cut: Cut);
}
