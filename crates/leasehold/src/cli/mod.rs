//! The command line, as it is written.

mod doctor;
mod migrate;
mod probe;
mod root;
mod salvage;
mod serve;
mod snapshot;
mod tenant;
mod token;
mod which;

pub(crate) use doctor::DoctorArgs;
pub(crate) use migrate::MigrateArgs;
pub(crate) use probe::{ProbeArgs, Probed};
pub(crate) use root::{Cli, Command, parse};
pub(crate) use salvage::{SalvageArgs, SalvageExport, SalvageList, SalvageVerb};
pub(crate) use serve::ServeArgs;
pub(crate) use snapshot::{SnapshotArgs, SnapshotList, SnapshotRestore, SnapshotVerb, SnapshotVerify};
pub(crate) use tenant::{TenantArgs, TenantExport, TenantForget, TenantHandoff, TenantList, TenantVerb};
pub(crate) use token::{TokenArgs, TokenCreate, TokenVerb};
pub(crate) use which::Which;
