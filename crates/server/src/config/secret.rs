//! What no log, error or `Debug` may show, and the files that it may stand in.

use std::{fmt, path::Path};

use serde::Deserialize;

use crate::ConfigError;

/// A text that is shown as `***`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// The text itself, for where it is used.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A secret as it may be set: by itself, or as a file that holds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretSetting<'a> {
    pub(super) key: &'static str,
    pub(super) text: Option<&'a SecretText>,
    pub(super) file_key: &'static str,
    pub(super) file: Option<&'a Path>,
}

impl SecretSetting<'_> {
    /// The key under which it is set; `None` where it is not.
    pub(super) fn key_set(&self) -> Result<Option<&'static str>, ConfigError> {
        match (self.text, self.file) {
            (Some(_), Some(_)) => Err(ConfigError::Unusable {
                key: self.file_key,
                detail: format!("`{}` is set too, and they say the same: leave one of them out", self.key),
            }),
            (Some(_), None) => Ok(Some(self.key)),
            (None, Some(_)) => Ok(Some(self.file_key)),
            (None, None) => Ok(None),
        }
    }

    /// The secret and the key under which it is set. A file's last line end is not part of it.
    pub(super) fn read(&self) -> Result<Option<(SecretText, &'static str)>, ConfigError> {
        let Some(key) = self.key_set()? else { return Ok(None) };
        let secret = match self.file {
            Some(path) => SecretText(read_file(key, path)?),
            None => self.text.cloned().unwrap_or_else(|| SecretText(String::new())),
        };
        if secret.reveal().is_empty() {
            let detail = match self.file {
                Some(path) => format!("{} is empty", path.display()),
                None => "it is empty".to_owned(),
            };
            return Err(ConfigError::Unusable { key, detail });
        }
        Ok(Some((secret, key)))
    }
}

/// The text of a file without the end of its last line.
pub(super) fn read_file(key: &'static str, path: &Path) -> Result<String, ConfigError> {
    let mut text = std::fs::read_to_string(path).map_err(|source| ConfigError::SecretFile {
        key,
        path: path.to_owned(),
        source,
    })?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting<'a>(text: Option<&'a SecretText>, file: Option<&'a Path>) -> SecretSetting<'a> {
        SecretSetting { key: "a.secret", text, file_key: "a.secret_file", file }
    }

    #[test]
    fn it_shows_nothing_of_itself() {
        let secret = SecretText::from("hunter2");
        assert_eq!(format!("{secret:?} {:?}", setting(Some(&secret), None)).matches("hunter2").count(), 0);
    }

    #[test]
    fn a_files_line_end_is_not_part_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        for text in ["hunter2", "hunter2\n", "hunter2\r\n", "hunter2\n\n"] {
            std::fs::write(&path, text).unwrap();
            let (secret, key) = setting(None, Some(&path)).read().unwrap().unwrap();
            assert_eq!((secret.reveal(), key), ("hunter2", "a.secret_file"));
        }
        std::fs::write(&path, " hunter2 \n").unwrap();
        let (secret, _) = setting(None, Some(&path)).read().unwrap().unwrap();
        assert_eq!(secret.reveal(), " hunter2 ", "nothing else is taken away");
    }

    #[test]
    fn what_is_set_twice_or_empty_or_not_there_names_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let (secret, empty) = (SecretText::from("hunter2"), SecretText::from(""));
        let refusal = |setting: SecretSetting<'_>| setting.read().unwrap_err().to_string();
        let missing = refusal(setting(None, Some(&path)));
        assert!(
            missing.contains("`a.secret_file`") && missing.contains(&*path.to_string_lossy()),
            "{missing}"
        );
        std::fs::write(&path, "\n").unwrap();
        let said = refusal(setting(None, Some(&path)));
        assert!(said.contains("`a.secret_file`") && said.contains("is empty"), "{said}");
        let said = refusal(setting(Some(&empty), None));
        assert!(said.contains("`a.secret`") && said.contains("empty"), "{said}");
        let said = refusal(setting(Some(&secret), Some(&path)));
        assert!(said.contains("`a.secret_file`") && said.contains("`a.secret`"), "{said}");
        assert!(setting(None, None).read().unwrap().is_none());
    }
}
