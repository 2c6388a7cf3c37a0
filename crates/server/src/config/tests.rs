//! Every key and every rule, over the file and over the environment.

use std::{collections::BTreeSet, time::Duration};

use leasehold_fuzz::{Format, Read};
use leasehold_lease::TlsMode;
use tempfile::TempDir;

use super::*;
use crate::{ConfigError, Edges, config::load::environment_of, fuzz::corpus};

const URL: (&str, &str) = ("postgres.url", "postgres://app:hunter2@db.internal/main");
const CONTAINER: (&str, &str) = ("azure.container", "images");
const ACCOUNT: (&str, &str) = ("azure.account", "acmeimages");
const KEY: (&str, &str) = ("azure.account_key", "aHVudGVyMg==");

/// A cloud pair to which nothing is missing.
const CLOUD: [(&str, &str); 4] = [URL, CONTAINER, ACCOUNT, KEY];

fn by_environment(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(None, environment_of(pairs.iter().copied()))
}

fn by_file(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leasehold.toml");
    let lines = pairs.iter().map(|(key, text)| match *text {
        bare if bare == "true" || bare == "false" || bare.parse::<i64>().is_ok() => {
            format!("{key} = {bare}\n")
        }
        text => format!("{key} = {text:?}\n"),
    });
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    Config::load(Some(&path), [])
}

/// What both ways to set `pairs` say; it names `key` and shows no secret.
#[track_caller]
fn assert_refused(key: &str, pairs: &[(&str, &str)]) -> String {
    let mut said = BTreeSet::new();
    for loaded in [by_environment(pairs), by_file(pairs)] {
        let error = loaded.map(|_| format!("{key}: {pairs:?} is accepted")).unwrap_err();
        assert!(matches!(error, ConfigError::Unusable { .. } | ConfigError::SecretFile { .. }), "{error:?}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(error.to_string().starts_with(&format!("`{key}` cannot be used: ")), "{key}: {error}");
        said.insert(error.to_string());
    }
    assert_eq!(said.len(), 1, "the file and the environment are told the same: {said:?}");
    said.pop_first().unwrap()
}

#[track_caller]
fn assert_refused_beside(base: &[(&str, &str)], key: &str, pairs: &[(&str, &str)]) -> String {
    let others = base.iter().filter(|(set, _)| pairs.iter().all(|(other, _)| other != set));
    let all: Vec<(&str, &str)> = others.chain(pairs).copied().collect();
    assert_refused(key, &all)
}

/// The cloud pair without its way in.
fn without_a_way_in() -> Vec<(&'static str, &'static str)> {
    vec![URL, CONTAINER]
}

/// A file that is there, with this text.
fn file(dir: &TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A value of the right kind for every key that has one way to be set, none of them the default.
fn a_value(key: &str) -> &'static str {
    match key {
        "listen" => "127.0.0.1:7401",
        "endpoint" => "https://a.example:7400",
        "data_dir" | "derivation_key_file" | "tls.cert_file" | "tls.key_file" | "peers.ca_file" => "/data",
        "replica" => "a",
        "ttl" => "20s",
        "auth.mode" => "none-acknowledged",
        "log.format" => "json",
        "log.filter" => "debug",
        "postgres.url" => URL.1,
        "postgres.schema" => "other",
        "postgres.sslmode" => "require",
        "postgres.migrate" | "placement.enabled" | "placement.rebalance" | "auth.tokens" => "false",
        "auth.issuers" => ISSUERS,
        "postgres.lock_timeout" => "1s",
        "azure.container" => "pictures",
        "azure.prefix" => "prod/",
        "azure.account" => ACCOUNT.1,
        "azure.endpoint" => "https://acmeledgers.blob.core.usgovcloudapi.net",
        "azure.account_key" => KEY.1,
        "azure.retry_for" => "5s",
        "azure.create_container" | "auth.open_metrics" => "true",
        "placement.load_slack" => "0.5",
        "limits.ledger_bytes_max" => "2097152",
        "limits.memory_bytes_max" => "67108864",
        "limits.rate_per_caller" | "limits.rate_per_tenant" | "limits.rate_failures_per_peer" => "7",
        key if key.ends_with("_max") && !key.ends_with("_time_max") && key != "limits.timeout_max" => "7",
        "snapshot.close_concurrency" => "7",
        _ => "3s",
    }
}

const ISSUERS: &str = r#"[{"issuer":"https://id.example/","audience":"l","keys_url":"https://id.example/k","organization":"acme"}]"#;

/// Keys that stand for others, or go with other ways in.
const OTHER_WAYS: [&str; 13] = [
    "peers.secret_file",
    "peers.listen",
    "postgres.url_file",
    "postgres.sslrootcert",
    "azure.connection_string",
    "azure.connection_string_file",
    "azure.account_key_file",
    "azure.sas",
    "azure.sas_file",
    "azure.identity",
    "azure.client_id",
    "azure.tenant_id",
    "azure.token_file",
];

#[test]
fn every_key_can_be_set_by_the_environment_and_by_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let url = file(&dir, "url", "postgres://app:hunter2@db.internal/main\n");
    let key = file(&dir, "key", "aHVudGVyMg==\n");
    let sas = file(&dir, "sas", "sv=2022-11-02&sig=hunter2\n");
    let token = file(&dir, "token", "hunter2\n");
    let string = "AccountName=acmeledgers;AccountKey=aHVudGVyMg==";
    let string_file = file(&dir, "string", string);
    let root =
        file(&dir, "root.pem", &rcgen::generate_simple_self_signed(["root".to_owned()]).unwrap().cert.pem());
    let plain: Vec<(&str, &str)> = CONFIG_KEYS
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| !OTHER_WAYS.contains(key) && *key != "azure.authority")
        .map(|key| (key, a_value(key)))
        .collect();
    let peers = file(&dir, "peers", "hunter2-hunter2-hunter2\n");
    let scenarios: [&[(&str, &str)]; 9] = [
        &plain,
        &[("peers.secret_file", &peers), ("peers.listen", "127.0.0.1:7401")],
        &[("postgres.url_file", &url), CONTAINER, ACCOUNT, ("azure.account_key_file", &key)],
        &[URL, ("postgres.sslmode", "verify-ca"), ("postgres.sslrootcert", &root), CONTAINER, ACCOUNT, KEY],
        &[URL, CONTAINER, ("azure.connection_string", string)],
        &[URL, CONTAINER, ("azure.connection_string_file", &string_file)],
        &[URL, CONTAINER, ACCOUNT, ("azure.sas", "sv=2022-11-02&sig=hunter2")],
        &[URL, CONTAINER, ACCOUNT, ("azure.sas_file", &sas)],
        &[
            URL,
            CONTAINER,
            ACCOUNT,
            ("azure.identity", "workload"),
            ("azure.client_id", "c"),
            ("azure.tenant_id", "t"),
            ("azure.token_file", &token),
            ("azure.authority", "https://login.microsoftonline.us"),
        ],
    ];
    let mut set = BTreeSet::new();
    for pairs in scenarios {
        let (from_file, from_environment) = (by_file(pairs).unwrap(), by_environment(pairs).unwrap());
        assert_eq!(from_file, from_environment);
        let shown = format!("{from_file:?}");
        assert!(!shown.contains("hunter2") && !shown.contains(KEY.1), "{shown}");
        set.extend(pairs.iter().map(|(key, _)| *key));
    }
    assert_eq!(set, CONFIG_KEYS.iter().map(|(key, _)| *key).collect());

    let config = by_environment(&plain).unwrap();
    assert_eq!(config.snapshot.every, Duration::from_secs(3));
    assert_eq!(config.limits.rows_max, 7);
    assert_eq!((config.auth.mode, config.log.format), (AuthMode::NoneAcknowledged, LogFormat::Json));
    let Ok(BackendPair::Cloud { postgres, azure }) = config.pair() else { panic!("{config:?}") };
    assert_eq!((postgres.pool_max, postgres.sslmode, postgres.migrate), (7, Some(TlsMode::Require), false));
    let options = azure.options(&Edges::system()).unwrap();
    assert_eq!((options.container.as_str(), options.prefix.unwrap().as_str()), ("pictures", "prod/"));
    assert_eq!(options.limits.patience, Duration::from_secs(5));
}

#[test]
fn a_key_list_that_misses_a_field_would_be_noticed() {
    for table in
        ["tls", "postgres", "azure", "snapshot", "limits", "follow", "peers", "placement", "auth", "log"]
    {
        let error = serde_json::from_str::<Config>(&format!("{{\"{table}\": {{\"?\": 1}}}}"))
            .unwrap_err()
            .to_string();
        let fields: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert!(!fields.is_empty(), "{error}");
        for field in fields {
            assert!(keys::is_key(&format!("{table}.{field}")), "{table}.{field}");
        }
    }
}

#[test]
fn what_does_not_go_together_names_the_key() {
    for (key, pairs) in [
        ("margin", &[("ttl", "2s"), ("margin", "2s")][..]),
        ("renew_every", &[("ttl", "10s"), ("renew_every", "9s")]),
        ("limits.memory_bytes_max", &[("limits.memory_bytes_max", "42991615")]),
        ("drain_timeout", &[("drain_timeout", "0s")]),
        ("drain_timeout", &[("drain_timeout", "1500us")]),
        ("drain_timeout", &[("drain_timeout", "2147483648ms")]),
        ("drain_timeout", &[("drain_timeout", "61s")]),
        ("drain_timeout", &[("grace_period", "29s")]),
        ("ttl", &[("ttl", "2days")]),
        ("placement.load_slack", &[("placement.load_slack", "11")]),
        ("placement.moves_pause", &[("placement.moves_pause", "0s")]),
        ("placement.moves_max", &[("placement.moves_max", "0")]),
        ("placement.warm_within", &[("placement.warm_within", "2days")]),
        ("snapshot.close_concurrency", &[("snapshot.close_concurrency", "0")]),
        ("limits.rows_max", &[("limits.rows_max", "0")]),
        ("endpoint", &[("endpoint", "a.example:1")]),
        ("endpoint", &[("endpoint", "http://a.example"), ("tls.cert_file", "c"), ("tls.key_file", "k")]),
        ("peers.listen", &[("peers.listen", "127.0.0.1:7401")]),
        ("tls.cert_file", &[("tls.cert_file", "c")]),
        ("tls.key_file", &[("tls.key_file", "k")]),
        ("log.filter", &[("log.filter", "a=b=c")]),
        ("auth.mode", &[("auth.mode", "required"), ("auth.tokens", "false")]),
        ("auth.leeway", &[("auth.leeway", "6m")]),
        ("auth.refresh_every", &[("auth.refresh_every", "6m")]),
        ("auth.refresh_every", &[("auth.refresh_every", "0s")]),
    ] {
        assert_refused(key, pairs);
    }
}

#[test]
fn without_authentication_only_loopback_unless_it_was_acknowledged() {
    for loaded in [by_environment(&[("listen", "0.0.0.0:7400")]), by_file(&[("listen", "0.0.0.0:7400")])] {
        let said = loaded.unwrap_err().to_string();
        assert!(said.contains("0.0.0.0:7400") && said.contains("none-acknowledged"), "{said}");
    }
    let pairs = [("listen", "0.0.0.0:7400"), ("auth.mode", "none-acknowledged")];
    assert!(by_environment(&pairs).is_ok());
    assert!(by_environment(&[("listen", "0.0.0.0:7400"), ("auth.mode", "required")]).is_ok());
    assert!(Config::dev("x", Some("192.0.2.1:7400".parse().unwrap())).is_err());
    assert!(Config::dev("x", Some("[::1]:0".parse().unwrap())).is_ok());
}

#[test]
fn what_cannot_be_used_of_postgres_names_the_key() {
    for (key, pairs) in [
        ("postgres.url", &[("postgres.url", "")][..]),
        ("postgres.url", &[("postgres.url", "hunter2")]),
        ("postgres.url", &[("postgres.url", "postgres://app:hunter2@db:port/main")]),
        ("postgres.url", &[("postgres.url", "user=app password=hunter2")]),
        ("postgres.url", &[("postgres.url", "postgres://db/main?sslmode=hunter2")]),
        ("postgres.url_file", &[("postgres.url_file", "/nowhere/url")]),
        ("postgres.schema", &[("postgres.schema", "Leases")]),
        ("postgres.pool_max", &[("postgres.pool_max", "0")]),
        ("postgres.pool_max", &[("postgres.pool_max", "1001")]),
        ("postgres.connect_timeout", &[("postgres.connect_timeout", "0s")]),
        ("postgres.statement_timeout", &[("postgres.statement_timeout", "2days")]),
        ("postgres.lock_timeout", &[("postgres.lock_timeout", "5s")]),
        ("postgres.sslrootcert", &[("postgres.sslrootcert", "/etc/root.pem")]),
        (
            "postgres.sslrootcert",
            &[("postgres.sslrootcert", "/etc/root.pem"), ("postgres.sslmode", "require")],
        ),
        (
            "postgres.sslrootcert",
            &[("postgres.sslrootcert", "/nowhere/root.pem"), ("postgres.sslmode", "verify-full")],
        ),
    ] {
        let base: &[_] = if key == "postgres.url_file" { &CLOUD[1..] } else { &CLOUD };
        assert_refused_beside(base, key, pairs);
    }
    assert_refused("postgres.url", &[("postgres.schema", "x"), CONTAINER, ACCOUNT, KEY]);
    let dir = tempfile::tempdir().unwrap();
    let twice = file(&dir, "url", "postgres://db/main");
    let said = assert_refused_beside(&CLOUD, "postgres.url_file", &[("postgres.url_file", &twice)]);
    assert!(said.contains("`postgres.url` is set too"), "{said}");
}

#[test]
fn what_cannot_be_used_of_azure_names_the_key() {
    for (key, pairs) in [
        ("azure.container", &[("azure.container", "Images")][..]),
        ("azure.prefix", &[("azure.prefix", "prod")]),
        ("azure.account", &[("azure.account", "a_b")]),
        ("azure.endpoint", &[("azure.endpoint", "https://a.example/?sig=hunter2")]),
        ("azure.account_key", &[("azure.account_key", "hunter2")]),
        ("azure.account_key", &[("azure.account_key", "")]),
        ("azure.client_id", &[("azure.client_id", "c")]),
        ("azure.tenant_id", &[("azure.tenant_id", "t")]),
        ("azure.token_file", &[("azure.token_file", "/token")]),
        ("azure.authority", &[("azure.authority", "https://a.example")]),
        ("azure.request_timeout", &[("azure.request_timeout", "61s")]),
        ("azure.request_timeout", &[("azure.request_timeout", "0s")]),
        ("azure.retry_for", &[("azure.retry_for", "2days")]),
        // Two ways in, each named beside the other.
        ("azure.account_key", &[("azure.connection_string", "UseDevelopmentStorage=true")]),
        ("azure.sas", &[("azure.sas", "sig=hunter2")]),
        ("azure.identity", &[("azure.identity", "managed")]),
    ] {
        assert_refused_beside(&CLOUD, key, pairs);
    }
    assert_refused("azure.container", &[URL, ACCOUNT, KEY]);
    assert_refused("azure.account", &[URL, CONTAINER, KEY]);
    let none = assert_refused("azure", &without_a_way_in());
    assert!(none.contains("`azure.identity`"), "{none}");
    for (key, pairs) in [
        ("azure.account", &[("azure.connection_string", "UseDevelopmentStorage=true"), ACCOUNT][..]),
        ("azure.connection_string", &[("azure.connection_string", "AccountName=abc;AccountKey=hunter2!")]),
        ("azure.connection_string_file", &[("azure.connection_string_file", "/nowhere/string")]),
        ("azure.account_key_file", &[ACCOUNT, ("azure.account_key_file", "/nowhere/key")]),
        ("azure.sas_file", &[ACCOUNT, ("azure.sas_file", "/nowhere/sas")]),
        ("azure.sas", &[ACCOUNT, ("azure.sas", "sv=2022-11-02")]),
        ("azure.sas", &[("azure.sas", "sig=hunter2"), ACCOUNT, ("azure.account_key_file", "/key")]),
        ("azure.endpoint", &[("azure.sas", "sig=hunter2"), ("azure.endpoint", "http://a.example")]),
        ("azure.account", &[("azure.sas", "sig=hunter2")]),
        ("azure.client_id", &[ACCOUNT, ("azure.identity", "workload")]),
        ("azure.client_id", &[ACCOUNT, ("azure.identity", "managed"), ("azure.client_id", "a b")]),
        ("azure.tenant_id", &[ACCOUNT, ("azure.identity", "workload"), ("azure.client_id", "c")]),
        ("azure.tenant_id", &[ACCOUNT, ("azure.identity", "managed"), ("azure.tenant_id", "t")]),
        (
            "azure.token_file",
            &[ACCOUNT, ("azure.identity", "workload"), ("azure.client_id", "c"), ("azure.tenant_id", "t")],
        ),
        (
            "azure.token_file",
            &[
                ACCOUNT,
                ("azure.identity", "workload"),
                ("azure.client_id", "c"),
                ("azure.tenant_id", "t"),
                ("azure.token_file", "/nowhere/token"),
            ],
        ),
    ] {
        assert_refused_beside(&without_a_way_in(), key, pairs);
    }
}

#[test]
fn a_secret_is_set_once_and_its_file_is_not_empty() {
    let dir = tempfile::tempdir().unwrap();
    let (full, empty) = (file(&dir, "full", "aHVudGVyMg=="), file(&dir, "empty", "\n"));
    for (key, file_key) in [
        ("azure.connection_string", "azure.connection_string_file"),
        ("azure.account_key", "azure.account_key_file"),
        ("azure.sas", "azure.sas_file"),
    ] {
        let said =
            assert_refused_beside(&without_a_way_in(), file_key, &[(key, "hunter2"), (file_key, &full)]);
        assert!(said.contains(&format!("`{key}` is set too")), "{said}");
        let said = assert_refused_beside(&without_a_way_in(), file_key, &[(file_key, &empty)]);
        assert!(said.ends_with("is empty"), "{said}");
    }
    assert_refused_beside(&CLOUD[1..], "postgres.url_file", &[("postgres.url_file", &empty)]);
    let workload =
        [ACCOUNT, ("azure.identity", "workload"), ("azure.client_id", "c"), ("azure.tenant_id", "t")];
    let token = [("azure.token_file", empty.as_str())];
    let base: Vec<_> = without_a_way_in().into_iter().chain(workload).collect();
    assert_refused_beside(&base, "azure.token_file", &token);
}

#[test]
fn the_platform_says_who_a_workload_is() {
    let dir = tempfile::tempdir().unwrap();
    let token = file(&dir, "token", "eyJ");
    let platform = [
        ("AZURE_CLIENT_ID", "from-the-platform"),
        ("AZURE_TENANT_ID", "directory"),
        ("AZURE_FEDERATED_TOKEN_FILE", token.as_str()),
        ("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com/"),
    ];
    let load = |pairs: &[(&str, &str)]| {
        let variables = platform.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let ours = environment_of([URL, CONTAINER, ACCOUNT].iter().chain(pairs).copied());
        Config::load(None, ours.into_iter().chain(variables)).unwrap().azure.unwrap()
    };
    let azure = load(&[("azure.identity", "workload")]);
    assert_eq!(azure.client_id.as_deref(), Some("from-the-platform"));
    assert_eq!(azure.tenant_id.as_deref(), Some("directory"));
    assert_eq!(azure.token_file.as_deref(), Some(std::path::Path::new(&token)));
    assert_eq!(azure.authority.as_deref(), Some("https://login.microsoftonline.com/"));
    let azure = load(&[("azure.identity", "workload"), ("azure.client_id", "c")]);
    assert_eq!(azure.client_id.as_deref(), Some("c"), "a key goes before the platform");
    let azure = load(&[("azure.identity", "managed")]);
    assert_eq!((azure.client_id, azure.token_file), (None, None), "the machine's own");
    assert_eq!(load(&[KEY]).client_id, None);
}

#[test]
fn one_backend_of_the_pair_names_the_other() {
    for (pairs, missing) in [(&CLOUD[..1], "azure"), (&CLOUD[1..], "postgres")] {
        for loaded in [by_environment(pairs), by_file(pairs)] {
            let error = loaded.unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{missing}` is not configured")), "{error}");
        }
    }
    let config = by_environment(&CLOUD).unwrap();
    assert!(matches!(config.pair(), Ok(BackendPair::Cloud { .. })));
    assert!(matches!(Config::default().pair(), Ok(BackendPair::Embedded)));
}

#[test]
fn serving_on_the_cloud_pair_takes_an_id_a_key_and_no_development() {
    let serving = [("replica", "a"), ("derivation_key_file", "/etc/leasehold/key")];
    let with = |without: &str| {
        let pairs = serving.iter().filter(|(key, _)| *key != without);
        by_environment(&CLOUD.iter().chain(pairs).copied().collect::<Vec<_>>()).unwrap()
    };
    assert!(with("").check_serving().is_ok());
    assert!(Config::default().check_serving().is_ok());
    for key in ["replica", "derivation_key_file"] {
        let said = with(key).check_serving().unwrap_err().to_string();
        assert!(said.starts_with(&format!("`{key}` cannot be used: it is not set")), "{said}");
    }
    let said = Config { dev: true, ..with("") }.check_serving().unwrap_err().to_string();
    assert!(said.contains("`postgres`") && said.contains("--dev"), "{said}");
}

const EXAMPLE: &str = include_str!("../../../../leasehold.example.toml");

/// A setting of the example: its key, what is written there, and whether that is no default.
struct Shown<'a> {
    key: String,
    text: &'a str,
    is_example: bool,
}

/// The settings of the example in their order. Prose begins with `# `, a setting with `#` and its name.
fn shown() -> Vec<Shown<'static>> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in EXAMPLE.lines() {
        if let Some(name) = line.trim_start_matches('#').strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
            continue;
        }
        let Some(setting) = line.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with(' '))
        else {
            assert!(line.is_empty() || line.starts_with('#'), "{line}");
            continue;
        };
        let (name, rest) = setting.split_once(" = ").unwrap();
        let (text, is_example) = match rest.split_once(" # no default") {
            Some((text, _)) => (text, true),
            None => (rest, false),
        };
        settings.push(Shown { key: format!("{section}{name}"), text, is_example });
    }
    settings
}

#[test]
fn the_example_shows_every_key_and_nothing_else() {
    let keys: Vec<String> = shown().into_iter().map(|shown| shown.key).collect();
    assert_eq!(keys, CONFIG_KEYS.iter().map(|(key, _)| *key).collect::<Vec<_>>());
}

#[test]
fn the_example_loads_and_says_nothing_but_the_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leasehold.toml");
    std::fs::write(&path, EXAMPLE).unwrap();
    assert_eq!(Config::load(Some(&path), []).unwrap(), Config::default());

    let loaded = |more: &str, is_cloud: bool| {
        let base = CLOUD.iter().filter(|(key, _)| is_cloud && !more.starts_with(&format!("{key} ")));
        let base = base.map(|(key, text)| format!("{key} = {text:?}\n")).collect::<Vec<_>>().concat();
        std::fs::write(&path, format!("{base}{more}\n")).unwrap();
        let mut config = Config::load(Some(&path), [])?;
        // What nobody set is chosen where it is used.
        config.listen = Some(config.listen_addr());
        if let Some(postgres) = &mut config.postgres {
            postgres.sslmode = postgres.sslmode.or(Some(TlsMode::Prefer));
        }
        Ok::<_, ConfigError>(config)
    };
    for Shown { key, text, is_example } in shown() {
        let is_cloud = key.starts_with("postgres.") || key.starts_with("azure.");
        let without = loaded("", is_cloud).unwrap();
        match (loaded(&format!("{key} = {text}"), is_cloud), is_example) {
            (Ok(with), true) => assert_ne!(with, without, "{key}: the example is the default"),
            (Ok(with), false) => assert_eq!(with, without, "{key}: not the default"),
            // A file that is not there, or another way in beside the one that is.
            (Err(error), true) => assert!(error.to_string().contains("cannot be used"), "{key}: {error}"),
            (Err(error), false) => panic!("{key}: {error}"),
        }
    }
}

#[test]
fn what_the_suites_servers_are_found_by_is_no_key() {
    let url = ("LEASEHOLD_TEST_POSTGRES".to_owned(), "postgres://127.0.0.1:1/postgres".to_owned());
    assert_eq!(Config::load(None, [url]).unwrap(), Config::default());
    let other = ("LEASEHOLD_TESTS".to_owned(), "1".to_owned());
    assert!(matches!(Config::load(None, [other]), Err(ConfigError::UnknownKey { .. })));
}

/// A file is whole, or what is wrong with it is said without a secret.
#[test]
fn a_file_is_a_configuration_or_an_error_without_a_secret_whatever_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("leasehold.toml");
    let read = |bytes: &[u8]| -> Read {
        std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
        match Config::load(Some(&path), []) {
            Ok(config) => {
                assert!(!format!("{config:?}").contains("hunter2"));
                Ok(bytes.to_vec())
            }
            Err(error) => {
                let said = format!("{error} {error:?}");
                assert!(!said.contains("hunter2"), "{said}");
                assert_eq!(error.code(), leasehold_types::ErrorCode::InvalidConfiguration, "{said}");
                // An operator's own file: a name of any length is told, since it is theirs.
                Err(said.chars().take(1_000).collect())
            }
        }
    };
    Format { name: "configuration", read: &read, is_same: &|input, written| input == written }.hold(corpus());
}
