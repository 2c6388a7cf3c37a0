//! File and environment, merged.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use config::{File, FileFormat, Map, Source, Value, ValueKind};

use super::{
    Config,
    keys::{is_key, is_section},
};
use crate::ConfigError;

/// Variables with our prefix that are the command line's and no keys.
const NOT_KEYS: &[&str] = &[
    "LEASEHOLD_CONFIG",
    "LEASEHOLD_URL",
    "LEASEHOLD_DEV",
    "LEASEHOLD_TOKEN_FILE",
    "LEASEHOLD_CA_FILE",
    "LEASEHOLD_OPERATOR",
];
/// What the suites' own servers are found by, so that a shell beside them can run the binary too. No key begins like this.
const OF_SUITES: &str = "LEASEHOLD_TEST_";

impl Config {
    /// The configuration of `file`, overridden by `environment`, checked.
    ///
    /// A key that is not one is an error that names it and where it stands. Of the environment, the variables that begin with
    /// `LEASEHOLD_` are keys; those by which a platform says who a workload is fill in what no key says.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut builder = config::Config::builder();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
            for (key, value) in flatten(parse(path, &text)?) {
                let is_empty_section = matches!(value.kind, ValueKind::Table(_)) && is_section(&key);
                if !is_key(&key) && !is_empty_section {
                    return Err(ConfigError::UnknownKey { key, place: path.display().to_string() });
                }
                check_kind(&key, &value)?;
                builder = set(builder, &key, value)?;
            }
        }
        let environment: BTreeMap<String, String> = environment.into_iter().collect();
        for (key, (variable, text)) in keys_of(&environment) {
            if !is_key(&key) {
                return Err(ConfigError::UnknownKey { key, place: variable });
            }
            builder = set(builder, &key, Value::new(None, ValueKind::String(text)))?;
        }
        let mut config: Self = builder
            .build()
            .and_then(config::Config::try_deserialize)
            .map_err(|source| ConfigError::InvalidValue { detail: source.to_string() })?;
        if let Some(azure) = &mut config.azure {
            azure.fill_from(|variable| environment.get(variable).cloned());
        }
        config.check()?;
        Ok(config)
    }

    /// The configuration of `serve --dev`: nothing to set up, no authentication, loopback only.
    pub fn dev(data_dir: impl Into<PathBuf>, listen: Option<SocketAddr>) -> Result<Self, ConfigError> {
        let config = Self { data_dir: data_dir.into(), listen, dev: true, ..Self::default() };
        config.check()?;
        Ok(config)
    }
}

type Builder = config::builder::ConfigBuilder<config::builder::DefaultState>;

fn set(builder: Builder, key: &str, value: Value) -> Result<Builder, ConfigError> {
    builder
        .set_override(key, value)
        .map_err(|source| ConfigError::InvalidValue { detail: format!("`{key}`: {source}") })
}

/// Refuses what would be taken for a whole number and is none: `1.5` would be rounded, and `true` be 1.
fn check_kind(key: &str, value: &Value) -> Result<(), ConfigError> {
    /// The only key that is no whole number.
    const REAL: &str = "placement.load_slack";
    let is_none = match value.kind {
        ValueKind::Float(_) => key != REAL,
        ValueKind::Boolean(_) => key.ends_with("_max"),
        _ => false,
    };
    let detail = || format!("`{key}`: it has to be a whole number or a text, such as 5 or \"5s\"");
    if is_none { Err(ConfigError::InvalidValue { detail: detail() }) } else { Ok(()) }
}

/// The file's tables. Of what is wrong only the kind and the line are told: the line itself may hold a secret.
fn parse(path: &Path, text: &str) -> Result<Map<String, Value>, ConfigError> {
    let syntax = |line, detail: String| ConfigError::Syntax { path: path.to_owned(), line, detail };
    if let Err(error) = toml::from_str::<toml::Table>(text) {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        return Err(syntax(before.matches('\n').count() + 1, error.message().to_owned()));
    }
    File::from_str(text, FileFormat::Toml).collect().map_err(|_| syntax(1, "it cannot be read".to_owned()))
}

/// The leaves of a table by their dotted names, in the order of the names. A table without any is one.
fn flatten(values: Map<String, Value>) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    let mut open: Vec<(String, Value)> = values.into_iter().collect();
    while let Some((name, value)) = open.pop() {
        match value.kind {
            ValueKind::Table(table) if !table.is_empty() => {
                open.extend(table.into_iter().map(|(key, inner)| (format!("{name}.{key}"), inner)));
            }
            _ => leaves.push((name, value)),
        }
    }
    leaves.sort_by(|one, other| one.0.cmp(&other.0));
    leaves
}

/// The keys that the environment sets, each with its variable and text.
fn keys_of(environment: &BTreeMap<String, String>) -> BTreeMap<String, (String, String)> {
    environment
        .iter()
        .filter(|(variable, text)| {
            let is_other = NOT_KEYS.contains(&variable.as_str()) || variable.starts_with(OF_SUITES);
            !is_other && !is_service_link(variable, text)
        })
        .filter_map(|(variable, text)| {
            let key = variable.strip_prefix("LEASEHOLD_")?.to_ascii_lowercase().replace("__", ".");
            Some((key, (variable.clone(), text.clone())))
        })
        .collect()
}

/// Kubernetes puts variables about every service of a namespace into its pods' environments; beside a service that is called
/// `leasehold` or `leasehold-…` they carry our prefix and mean nothing to us.
fn is_service_link(variable: &str, text: &str) -> bool {
    variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_SERVICE_PORT")
        || variable.contains("_SERVICE_PORT_")
        || variable.split_once("_PORT").is_some_and(|(_, rest)| {
            (rest.is_empty() && text.contains("://"))
                || rest.strip_prefix('_').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
}

#[cfg(test)]
pub(crate) fn environment_of<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> std::collections::HashMap<String, String> {
    pairs.into_iter().map(|(key, text)| (super::keys::variable_of(key), text.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_types::ErrorCode;

    use super::*;

    fn from_toml(text: &str) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leasehold.toml");
        std::fs::write(&path, text).unwrap();
        Config::load(Some(&path), [])
    }

    fn from_env(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::load(None, environment_of(pairs.iter().copied()))
    }

    #[test]
    fn nothing_set_is_the_defaults() {
        assert_eq!(Config::load(None, []).unwrap(), Config::default());
        assert_eq!(from_toml("").unwrap(), Config::default());
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leasehold.toml");
        std::fs::write(&path, "ttl = \"30s\"\n[limits]\nrows_max = 5\n").unwrap();
        let config = Config::load(Some(&path), environment_of([("ttl", "40s")])).unwrap();
        assert_eq!((config.ttl, config.limits.rows_max), (Duration::from_secs(40), 5));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let error = from_toml("[limits]\nrowz_max = 5\n").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidConfiguration);
        assert!(error.to_string().contains("`limits.rowz_max`"), "{error}");
        assert!(error.to_string().contains("leasehold.toml"), "{error}");
        assert!(from_toml("ttl.x = 1\n").is_err());
        let error = from_toml("[postgers]\n").unwrap_err();
        assert!(error.to_string().contains("`postgers`"), "{error}");
        let error = from_env(&[("limits.rowz_max", "5")]).unwrap_err();
        assert!(error.to_string().contains("LEASEHOLD_LIMITS__ROWZ_MAX"), "{error}");
    }

    #[test]
    fn a_value_that_is_none_names_its_key() {
        for (key, text) in [
            ("ttl", "soon"),
            ("limits.rows_max", "many"),
            ("auth.mode", "maybe"),
            ("listen", "here"),
            ("replica", "../a"),
            ("log.format", "xml"),
            ("postgres.pool_max", "-1"),
            ("postgres.sslmode", "verify"),
            ("postgres.migrate", "perhaps"),
            ("azure.identity", "root"),
            ("azure.retry_for", "long"),
        ] {
            let error = from_env(&[(key, text)]).unwrap_err();
            assert!(error.to_string().contains(key), "{key}: {error}");
        }
    }

    #[test]
    fn what_would_be_rounded_is_refused_by_its_key() {
        for line in ["[limits]\nrows_max = 1.5\n", "limits.rows_max = true\n", "ttl = 1.5\n"] {
            let error = from_toml(line).unwrap_err();
            let key = if line.starts_with("ttl") { "`ttl`" } else { "`limits.rows_max`" };
            assert!(error.to_string().contains(key), "{line}: {error}");
        }
        assert!(from_toml("[placement]\nload_slack = 0.5\n").is_ok());
    }

    #[test]
    fn a_file_that_is_no_toml_says_where() {
        let error = from_toml("replica = \"a\"\nttl = \n").unwrap_err();
        assert!(matches!(error, ConfigError::Syntax { line: 2, .. }), "{error:?}");
        assert!(error.to_string().contains("leasehold.toml"), "{error}");
        let error = Config::load(Some(Path::new("/nowhere/leasehold.toml")), []).unwrap_err();
        assert!(matches!(error, ConfigError::Unreadable { .. }));
    }

    #[test]
    fn a_line_that_is_no_toml_is_named_and_not_shown() {
        let said =
            from_toml("ttl = \"3s\"\n[postgres]\nurl = \"postgres://app:hunter2@db/main\n").unwrap_err();
        let said = format!("{said} {said:?}");
        assert!(said.contains("line 3") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn a_section_without_keys_is_a_section() {
        assert_eq!(from_toml("[limits]\n").unwrap(), Config::default());
        let said = from_toml("[postgres]\n").unwrap_err().to_string();
        assert!(said.contains("`azure` is not configured and `postgres` is"), "{said}");
        let said = from_toml("[postgres]\n[azure]\n").unwrap_err().to_string();
        assert!(said.contains("`postgres.url`"), "{said}");
    }

    #[test]
    fn what_a_cluster_puts_into_the_environment_is_no_key() {
        let links = [
            ("LEASEHOLD_SERVICE_HOST", "10.0.0.1"),
            ("LEASEHOLD_SERVICE_PORT", "7400"),
            ("LEASEHOLD_SERVICE_PORT_HTTP", "7400"),
            ("LEASEHOLD_PORT", "tcp://10.0.0.1:7400"),
            ("LEASEHOLD_PORT_7400_TCP", "tcp://10.0.0.1:7400"),
            ("LEASEHOLD_HEADLESS_PORT_7400_TCP_ADDR", "10.0.0.1"),
            ("LEASEHOLD_CONFIG", "/etc/leasehold.toml"),
            ("PATH", "/bin"),
        ];
        let environment = links.map(|(variable, text)| (variable.to_owned(), text.to_owned()));
        assert_eq!(Config::load(None, environment).unwrap(), Config::default());
    }
}
