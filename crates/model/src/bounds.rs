//! What a configuration explores: everything that can happen within these numbers.

use crate::mutation::Mutation;

/// The bounds of one exhaustive search.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that happens or does not")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How many tenures there are in all, each stalled wherever it likes: 1 to [`Self::TENURES_MAX`]. One more opens alone from
    /// every state, to see whether it gets through and what it finds.
    pub tenures: u8,
    /// How many publishes each tenure begins, given up in the middle or not.
    pub publishes: u8,
    /// How many sweeps each tenure begins.
    pub sweeps: u8,
    /// How often each tenure asks whether it may be resumed.
    pub resumes: u8,
    /// How many forgets there are in all, by a tenure that serves or by one that was acquired for it.
    pub forgets: u8,
    /// How often a forgotten tenant is looked at again.
    pub rechecks: u8,
    /// How many steps are executed without an answer, or half executed.
    pub lost: u8,
    /// How many puts may be executed after their caller saw an error.
    pub late: u8,
    /// How often the row falls back to an earlier state.
    pub rewinds: u8,
    /// Whether the lease store may not answer the question after a manifest.
    pub row_silent: bool,
    /// Whether images lie in their manifests; otherwise they are objects of their own.
    pub inline: bool,
    /// Whether a listing comes in two pages, with anything between them.
    pub paged: bool,
    /// Whether clocks are honest: for a [`Fleet`](crate::Fleet), whose tenures write and lapse by themselves.
    pub honest: bool,
    /// A deviation that is to be found.
    pub mutation: Option<Mutation>,
}

impl Bounds {
    /// The most tenures that a state has room for.
    pub const TENURES_MAX: u8 = 4;

    /// One tenure that publishes once, and nothing goes wrong.
    pub const SMALLEST: Self = Self {
        tenures: 1,
        publishes: 1,
        sweeps: 0,
        resumes: 0,
        forgets: 0,
        rechecks: 0,
        lost: 0,
        late: 0,
        rewinds: 0,
        row_silent: false,
        inline: true,
        paged: false,
        honest: false,
        mutation: None,
    };
}
