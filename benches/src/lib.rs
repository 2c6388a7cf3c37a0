//! What the benches share: replicas in directories of their own, the raw connection that they are compared with, a load driver, a
//! relay that counts, what the machine says of a process, and tables.

mod driver;
mod process;
mod raw;
mod relay;
mod replica;
mod table;
mod timing;

pub use driver::{Connection, Load, drive};
pub use process::{Usage, usage_of};
pub use raw::RawLedger;
pub use relay::{Relay, Relayed};
pub use replica::{BenchError, CloudAddresses, Replica, event, fill};
pub use table::{Table, ratio};
pub use timing::{Stopwatch, median, percentile, show};
