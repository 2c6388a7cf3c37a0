//! Logs: one subscriber for the process, on the standard error stream.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, Layer as _, filter::filter_fn, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{
    ConfigError,
    config::{LogFormat, LogSettings},
};

/// What other people's crates say below this may hold what clients and servers sent (heads, statements, bodies, credentials): it is
/// written by no filter.
const OTHERS_LEVEL: Level = Level::INFO;

/// Whether this may be written at all; the filter that is configured decides of that what is.
fn may_tell(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= OTHERS_LEVEL || metadata.target().starts_with("leasehold")
}

/// Installs the process's subscriber. A second call changes nothing: the first one's settings stay.
pub fn init_telemetry(settings: &LogSettings) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&settings.filter)
        .map_err(|source| ConfigError::Unusable { key: "log.filter", detail: source.to_string() })?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match settings.format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // That a subscriber stands already is how an embedding program, or a test, wants it.
    let _ = tracing_subscriber::registry().with(filter).with(filter_fn(may_tell)).with(lines).try_init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_is_none_names_its_key() {
        let settings = LogSettings { filter: "a=b=c".to_owned(), ..LogSettings::default() };
        assert!(init_telemetry(&settings).unwrap_err().to_string().contains("`log.filter`"));
    }
}
