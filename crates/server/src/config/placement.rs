//! `[placement]`: where the tenants of a fleet belong.

use std::time::Duration;

use serde::Deserialize;

use crate::{ConfigError, placement::Slack};

/// Where the tenants of a fleet belong. Without `peers.secret_file` nothing of it has an effect.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlacementSettings {
    /// Whether a tenant that nobody holds is opened where it belongs. `false`: where it is asked for.
    pub enabled: bool,
    /// By how much a replica may be above the even share, as a part of it: 0 to 10.
    pub load_slack: f64,
    /// Whether a replica that has more than its share, or tenants of one that came, hands some over.
    pub rebalance: bool,
    /// How many it hands over side by side.
    pub moves_max: usize,
    /// How long it waits before the next ones.
    #[serde(with = "humantime_serde")]
    pub moves_pause: Duration,
    /// What was used within this time before its replica leaves is opened elsewhere at once. Zero: nothing is.
    #[serde(with = "humantime_serde")]
    pub warm_within: Duration,
}

impl Default for PlacementSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            load_slack: 0.25,
            rebalance: true,
            moves_max: 2,
            moves_pause: Duration::from_secs(1),
            warm_within: Duration::from_secs(300),
        }
    }
}

impl PlacementSettings {
    /// The slack, where it is one.
    pub(crate) fn slack(&self) -> Result<Slack, ConfigError> {
        Slack::new(self.load_slack).ok_or_else(|| ConfigError::Unusable {
            key: "placement.load_slack",
            detail: format!("{} is not between 0 and 10", self.load_slack),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slack_that_is_none_is_named() {
        let mut config = crate::Config::default();
        config.check().unwrap();
        for load_slack in [-0.25, 25.0, f64::NAN] {
            config.placement.load_slack = load_slack;
            let said = config.check().unwrap_err().to_string();
            assert!(said.starts_with("`placement.load_slack` cannot be used"), "{said}");
        }
    }

    #[test]
    fn the_default_is_the_slacks_own() {
        assert_eq!(PlacementSettings::default().slack().unwrap(), Slack::default());
    }
}
