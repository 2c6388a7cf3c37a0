//! What is done, and in which order: pure plans.
//!
//! Each plan is driven alike: `next` says the [`Step`], which is an [`Ask`] or the end; `feed` takes the
//! [`Answer`]. Until it is fed, `next` says the same again: a step without an answer is simply asked again, or
//! the plan is given up, and both are safe at every step. No plan sees a clock, a store or a task.

mod clear;
mod forget;
mod open;
mod publish;
mod resume;
mod step;
mod sweep;

pub use clear::{ClearPlan, Cleared};
pub use forget::{ForgetPlan, Forgotten, next_recheck, recheck_times};
pub use open::{OpenPlan, Opening, Start};
pub use publish::{Draft, EncodedImage, PublishPlan};
pub use resume::{Resume, ResumePlan};
pub use step::{Answer, Ask, Step};
pub use sweep::{Keep, SweepPlan, Swept};
