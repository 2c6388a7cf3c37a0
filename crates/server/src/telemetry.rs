//! Logs: one subscriber for the process, on the standard error stream.

use leasehold_tenure::TenureEvent;
use tracing_subscriber::EnvFilter;

use crate::{
    ConfigError,
    config::{LogFormat, LogSettings},
};

/// Installs the process's subscriber. A second call changes nothing: the first one's settings stay.
pub fn init_telemetry(settings: &LogSettings) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&settings.filter)
        .map_err(|source| ConfigError::Unusable { key: "log.filter", detail: source.to_string() })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // That a subscriber stands already is how an embedding program, or a test, wants it.
    let _ = match settings.format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Logs what the router tells. Renewals are routine; what costs somebody something is a warning.
pub(crate) fn log_transition(event: &TenureEvent) {
    let (name, key) = (event.name(), event.key());
    match event {
        TenureEvent::Renewed { .. } => tracing::trace!(%key, "{name}"),
        TenureEvent::SnapshotPublished { number, position, bytes, .. } => {
            tracing::debug!(%key, %number, %position, bytes, "{name}");
        }
        TenureEvent::Lapsed { epoch, .. } => tracing::warn!(%key, %epoch, "{name}"),
        TenureEvent::Lost { epoch, reason, .. } => tracing::warn!(%key, %epoch, %reason, "{name}"),
        TenureEvent::SnapshotFailed { epoch, error, code, .. } => {
            tracing::warn!(%key, %epoch, %error, %code, "{name}");
        }
        TenureEvent::DrainTimeout { epoch, in_flight, .. } => {
            tracing::warn!(%key, %epoch, in_flight, "{name}");
        }
        TenureEvent::Released { epoch, flushed, .. } => tracing::info!(%key, %epoch, flushed, "{name}"),
        _ => tracing::info!(%key, "{name}"),
    }
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
