//! What an operator can set: one TOML file, each key also an environment variable, defaults for all of it.

mod check;
mod file;
mod keys;
mod load;

pub use file::{
    AuthMode, AuthSettings, Config, FollowSettings, LimitSettings, LogFormat, LogSettings, SnapshotSettings,
};
pub use keys::CONFIG_KEYS;
