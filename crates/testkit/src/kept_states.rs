//! Every state that the rows of a lease store ever had, kept by its own database, so that a test can set it back to each.

use leasehold_types::LeaseKey;

/// The tables of one lease store: as SQL names them.
pub(crate) struct Tables<'a> {
    /// The leases.
    pub(crate) lease: &'a str,
    /// A row for each state, numbered from 1 by `n` in front of the lease's own columns.
    pub(crate) states: &'a str,
    /// The lease's columns, with commas.
    pub(crate) columns: &'a str,
}

impl Tables<'_> {
    /// The statements that set the leases back: `only` one tenant's, or all.
    pub(crate) fn set_back(&self, states: u32, only: Option<&LeaseKey>) -> String {
        let Self { lease, states: kept, columns } = self;
        // A key has no quote in it.
        let of = |prefix: &str| only.map_or("true".to_owned(), |key| format!("{prefix}lease_key = '{key}'"));
        format!(
            "DELETE FROM {lease} WHERE {};
             INSERT INTO {lease} ({columns})
             SELECT {columns} FROM {kept} AS s WHERE {} AND s.n <= {states}
                AND s.n = (SELECT max(n) FROM {kept} AS o WHERE o.lease_key = s.lease_key AND o.n <= {states});",
            of(""),
            of("s."),
        )
    }
}
