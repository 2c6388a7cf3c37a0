//! What people see of long work, on the standard error stream.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether somebody looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(crate) const fn new(is_shown: bool) -> Self {
        Self { is_shown }
    }

    /// So many bytes.
    pub(crate) fn bytes(self, what: &str, len: Option<u64>) -> Bar {
        self.bar(what, len, "{msg}  {bar:30}  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left")
    }

    /// So many things.
    pub(crate) fn things(self, what: &str, count: u64) -> Bar {
        self.bar(what, Some(count), "{msg}  {bar:30}  {pos} of {len}")
    }

    /// Something that does not say how far it is.
    pub(crate) fn spinner(self, what: &str) -> Bar {
        let bar = self.bar(what, None, "{spinner}  {msg}  {elapsed}");
        if self.is_shown {
            bar.0.enable_steady_tick(std::time::Duration::from_millis(100));
        }
        bar
    }

    fn bar(self, what: &str, len: Option<u64>, template: &str) -> Bar {
        let target = if self.is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        // A template that does not parse costs looks only.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Bar(ProgressBar::with_draw_target(len, target).with_style(style).with_message(what.to_owned()))
    }
}

/// One piece of long work. Its line goes when it is dropped, so that what is said afterwards stands alone.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    pub(crate) fn say(&self, what: String) {
        self.0.set_message(what);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_parses() {
        for template in [
            "{msg}  {bar:30}  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left",
            "{msg}  {bar:30}  {pos} of {len}",
            "{spinner}  {msg}  {elapsed}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
        let bar = Progress::new(false).bytes("export", Some(10));
        bar.advance(3);
        bar.say("still".to_owned());
    }
}
