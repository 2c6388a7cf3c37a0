//! Logs: one subscriber for the process, on the standard error stream.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::{
    ConfigError,
    config::{LogFormat, LogSettings},
};

/// Installs the process's subscriber. A second call changes nothing: the first one's settings stay.
pub fn init_telemetry(settings: &LogSettings) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&settings.filter)
        .map_err(|source| ConfigError::Unusable { key: "log.filter", detail: source.to_string() })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // That a subscriber stands already is how an embedding program, or a test, wants it.
    let _ = match settings.format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
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
