//! One format, and the laws.

use std::{fmt, panic, path::Path};

use proptest::{
    prelude::{Strategy as _, prop_oneof},
    test_runner::{TestCaseError, TestError},
};

use crate::{
    corpus::{Corpus, Kept},
    near::{anything, near, too_much},
    plan::Plan,
};

/// The longest text of a refusal, in bytes: what was sent may be part of it, and is cut.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;

/// What becomes of bytes: what they are written as again, or the text of their refusal.
pub type Read = Result<Vec<u8>, String>;

/// Something that is read from bytes that others wrote.
pub struct Format<'a> {
    /// Its name, and its corpus' directory.
    pub name: &'a str,
    /// Reads it. A target of a fuzzer that is guided by coverage calls this, as [`Format::judge`] does.
    pub read: &'a dyn Fn(&[u8]) -> Read,
    /// Whether bytes that are read say what they are written as again.
    pub is_same: &'a dyn Fn(&[u8], &[u8]) -> bool,
}

impl fmt::Debug for Format<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The law that an input broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Its reader panicked.
    Panicked {
        /// What was said.
        said: String,
    },
    /// It is refused by a text without bounds.
    LongRefusal {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It is read as something else than it says.
    SomethingElse {
        /// As what.
        written: Vec<u8>,
    },
    /// What is written of it is not read as the same.
    NoWayBack {
        /// What is written of it.
        written: Vec<u8>,
        /// What that is read as.
        again: Read,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked { said } => write!(f, "its reader panicked: {said}"),
            Self::LongRefusal { bytes } => {
                write!(f, "it is refused by {bytes} bytes: {REFUSAL_BYTES_MAX} at the most")
            }
            Self::SomethingElse { written } => {
                write!(f, "it is read as something else: {}", Shown(written))
            }
            Self::NoWayBack { written, again } => match again {
                Ok(again) => {
                    write!(f, "it is written as {}, and that is read as {}", Shown(written), Shown(again))
                }
                Err(why) => write!(f, "it is written as {}, and that is refused: {why}", Shown(written)),
            },
        }
    }
}

impl Format<'_> {
    /// Holds one input to the laws, and says whether it is read.
    pub fn judge(&self, input: &[u8]) -> Result<bool, Broken> {
        let judged = panic::catch_unwind(panic::AssertUnwindSafe(|| self.judge_or_panic(input)));
        judged.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&said| said.to_owned()));
            Err(Broken::Panicked { said: said.unwrap_or_default() })
        })
    }

    fn judge_or_panic(&self, input: &[u8]) -> Result<bool, Broken> {
        match (self.read)(input) {
            Err(why) if why.len() > REFUSAL_BYTES_MAX => Err(Broken::LongRefusal { bytes: why.len() }),
            Err(_) => Ok(false),
            Ok(written) if !(self.is_same)(input, &written) => Err(Broken::SomethingElse { written }),
            Ok(written) => match (self.read)(&written) {
                Ok(again) if again == written => Ok(true),
                again => Err(Broken::NoWayBack { written, again }),
            },
        }
    }

    /// Holds it to the laws: all of its corpus below `directory`, then what is made up.
    ///
    /// # Panics
    ///
    /// When a law is broken. The input was kept then, and the text says how the run is repeated.
    pub fn hold(&self, directory: &Path) {
        if Plan::is_wished(self.name) {
            self.hold_to(directory, Plan::of_environment());
        }
    }

    /// The same by a plan.
    ///
    /// # Panics
    ///
    /// As [`Self::hold`].
    pub fn hold_to(&self, directory: &Path, plan: Plan) {
        let corpus = Corpus::of(directory, self.name);
        for (kept, path, bytes) in corpus.files() {
            let is_read = self.judge(&bytes).unwrap_or_else(|broken| panic!("{}: {broken}", path.display()));
            let expected = match kept {
                Kept::Valid => true,
                Kept::Refused => false,
                Kept::Found => continue,
            };
            assert_eq!(is_read, expected, "whether {} is read: {}", path.display(), Shown(&bytes));
        }
        let valid = corpus.valid();
        for bytes in too_much(&valid) {
            if let Err(broken) = self.judge(&bytes) {
                panic!("{}: {} bytes that begin with {}: {broken}", self.name, bytes.len(), Shown(&bytes));
            }
        }
        self.make_up(&corpus, valid, plan);
    }

    fn make_up(&self, corpus: &Corpus, valid: Vec<Vec<u8>>, plan: Plan) {
        let inputs = prop_oneof![4 => near(valid), 1 => anything()];
        let asked = plan.runner().run(&inputs.prop_map(Input), |Input(input)| {
            self.judge(&input).map(drop).map_err(|broken| TestCaseError::fail(broken.to_string()))
        });
        match asked {
            Ok(()) => {}
            Err(TestError::Abort(why)) => panic!("{}: nothing could be made up: {why}", self.name),
            Err(TestError::Fail(why, Input(input))) => {
                let kept = corpus
                    .keep(&input)
                    .map_or_else(String::new, |path| format!("\nkept as {}", path.display()));
                panic!(
                    "{}: {}: {why}{kept}\nthe same again: cargo xtask fuzz --rounds 1 --seed {} --cases {} --format {}",
                    self.name,
                    Shown(&input),
                    plan.seed,
                    plan.cases,
                    self.name
                );
            }
        }
    }
}

/// Bytes that show as text.
#[derive(Clone)]
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Shown(&self.0))
    }
}

struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BYTES_MAX: usize = 400;
        let shown = &self.0[..self.0.len().min(BYTES_MAX)];
        write!(f, "`{}`{}", shown.escape_ascii(), if shown.len() < self.0.len() { "…" } else { "" })
    }
}
