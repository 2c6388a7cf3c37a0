//! What the system gives a process.

use crate::{
    descriptors,
    doctor::{check::Check, facts::Settings, finding::Finding},
};

/// Whether a process that is started here could have as many files open as its configuration may come to.
pub(super) fn open_files(settings: &Settings) -> Finding {
    let check = Check::ProcessOpenFiles;
    match &settings.too_few_files {
        None => Finding::ok(check, "as many as the configuration may come to"),
        Some(said) => Finding::warn(check, said, descriptors::NEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict,
        judge::samples::{assert_says, settings},
    };

    #[test]
    fn too_few_are_told_with_what_to_do() {
        let settings =
            Settings { too_few_files: Some("this process may have 7 files open".into()), ..settings() };
        let found = open_files(&settings);
        assert_says(&found, Verdict::Warn, "7 files");
        assert!(found.next.unwrap().contains("LimitNOFILE"));
    }
}
