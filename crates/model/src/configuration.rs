//! The configurations of the suite, and the larger ones: each explored to its end.

use crate::{bounds::Bounds, fleet::FleetBounds};

/// Bounds with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// How the command line and the documents call it.
    pub name: &'static str,
    /// The bounds.
    pub bounds: Bounds,
}

const TWO: Bounds = Bounds { tenures: 2, ..Bounds::SMALLEST };
const THREE: Bounds = Bounds { tenures: 3, ..Bounds::SMALLEST };

const fn named(name: &'static str, bounds: Bounds) -> Configuration {
    Configuration { name, bounds }
}

impl Configuration {
    /// What the suite explores.
    pub const SUITE: [Self; 14] = [
        named("faults", Bounds { lost: 1, late: 1, ..THREE }),
        named("publishes", Bounds { publishes: 2, lost: 1, late: 2, row_silent: true, ..TWO }),
        named("rows", Bounds { rewinds: 1, ..THREE }),
        named("resumes", Bounds { rewinds: 2, resumes: 1, ..TWO }),
        named("forgets", Bounds { publishes: 2, forgets: 1, late: 1, row_silent: true, ..TWO }),
        named("forgets-lost", Bounds { forgets: 1, rechecks: 1, lost: 1, late: 1, ..TWO }),
        named("forgets-three", Bounds { forgets: 1, ..THREE }),
        named("forgets-rows", Bounds { forgets: 1, rewinds: 2, resumes: 1, ..TWO }),
        named("sweeps", Bounds { publishes: 2, sweeps: 1, lost: 1, inline: false, ..TWO }),
        named("sweeps-three", Bounds { sweeps: 1, inline: false, ..THREE }),
        named("sweeps-forgets", Bounds { sweeps: 1, forgets: 1, rewinds: 1, ..TWO }),
        named("pages", Bounds { paged: true, late: 1, ..THREE }),
        named("pages-sweeps", Bounds { sweeps: 1, paged: true, inline: false, ..TWO }),
        named("pages-forgets", Bounds { forgets: 1, rewinds: 1, paged: true, ..TWO }),
    ];

    /// What `cargo xtask model --deep` explores besides.
    pub const DEEP: [Self; 6] = [
        named("deep-forgets-rows", Bounds { forgets: 1, rewinds: 1, ..THREE }),
        named("deep-faults", Bounds { publishes: 2, lost: 1, late: 1, row_silent: true, ..THREE }),
        named("deep-four", Bounds { tenures: 4, ..Bounds::SMALLEST }),
        named("deep-forgets", Bounds { publishes: 2, forgets: 1, lost: 1, late: 1, row_silent: true, ..TWO }),
        named("deep-sweeps", Bounds { sweeps: 1, lost: 1, late: 1, inline: false, ..THREE }),
        named("deep-pages", Bounds { sweeps: 1, forgets: 1, paged: true, inline: false, ..TWO }),
    ];

    /// The configuration of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::SUITE.into_iter().chain(Self::DEEP).find(|configuration| configuration.name == name)
    }
}

/// Bounds of a fleet with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetConfiguration {
    /// How the command line and the documents call it.
    pub name: &'static str,
    /// The bounds.
    pub bounds: FleetBounds,
}

const PAIR: FleetBounds = FleetBounds {
    tenures: 2,
    writes: 1,
    uploads: 1,
    asks: 1,
    renewals: 1,
    failures: 0,
    working: false,
    mutation: None,
};

const fn fleet(name: &'static str, bounds: FleetBounds) -> FleetConfiguration {
    FleetConfiguration { name, bounds }
}

impl FleetConfiguration {
    /// What the suite explores.
    pub const SUITE: [Self; 3] = [
        fleet(
            "fleet-one",
            FleetBounds { tenures: 1, uploads: 2, writes: 2, asks: 3, failures: 1, working: true, ..PAIR },
        ),
        fleet("fleet-two", PAIR),
        fleet("fleet-handoffs", FleetBounds { asks: 2, renewals: 0, failures: 1, working: true, ..PAIR }),
    ];

    /// What `cargo xtask model --deep` explores besides.
    pub const DEEP: [Self; 2] = [
        fleet("deep-fleet-two", FleetBounds { asks: 2, renewals: 2, failures: 1, working: true, ..PAIR }),
        fleet("deep-fleet-three", FleetBounds { tenures: 3, ..PAIR }),
    ];

    /// The configuration of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::SUITE.into_iter().chain(Self::DEEP).find(|configuration| configuration.name == name)
    }
}
