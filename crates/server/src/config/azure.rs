//! `[azure]`: where images live in the cloud pair.

use std::{path::PathBuf, sync::Arc, time::Duration};

use leasehold_blob::{AzureCredential, AzureLimits, AzureOptions, AzureStore, BlobError, BlobPrefix, Secret};
use serde::Deserialize;

use super::secret::{SecretSetting, SecretText, read_file};
use crate::{ConfigError, Edges};

/// What the platform (AKS with workload identity) puts into a pod's environment.
const CLIENT_ID: &str = "AZURE_CLIENT_ID";
const TENANT_ID: &str = "AZURE_TENANT_ID";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";

const WAYS: &str = "`azure.connection_string`, `azure.account_key`, `azure.sas` (each also as a file: `azure.sas_file`) or `azure.identity`";

/// What a secret becomes.
type WayIn = fn(Secret) -> AzureCredential;

/// The blob store in a container of an Azure storage account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AzureSettings {
    /// The container.
    pub container: Option<String>,
    /// What every object's name begins with, for a container that is shared: ends with `/`.
    pub prefix: Option<String>,
    /// The storage account. Not beside a connection string, which names it.
    pub account: Option<String>,
    /// The blob service's address. `None`: of the account in the public cloud.
    pub endpoint: Option<String>,
    /// A way in: the connection string.
    pub connection_string: Option<SecretText>,
    /// The file that holds the connection string. Read at the start, like the two below.
    pub connection_string_file: Option<PathBuf>,
    /// A way in: one of the account's keys.
    pub account_key: Option<SecretText>,
    /// The file that holds the key.
    pub account_key_file: Option<PathBuf>,
    /// A way in: a shared access signature.
    pub sas: Option<SecretText>,
    /// The file that holds the signature.
    pub sas_file: Option<PathBuf>,
    /// A way in: without a secret, by an identity that the platform vouches for.
    pub identity: Option<AzureIdentity>,
    /// The identity's client id. Of a workload: `None` is `AZURE_CLIENT_ID`. Of a machine: `None` is the system-assigned one.
    pub client_id: Option<String>,
    /// A workload's directory. `None`: `AZURE_TENANT_ID`.
    pub tenant_id: Option<String>,
    /// Where the platform keeps a workload's token fresh; read at each refresh. `None`: `AZURE_FEDERATED_TOKEN_FILE`.
    pub token_file: Option<PathBuf>,
    /// Who exchanges a workload's token. `None`: `AZURE_AUTHORITY_HOST`, else the public cloud's.
    pub authority: Option<String>,
    /// How long one attempt of one request may take, its body (8 MiB at the most) included.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// How long a request is repeated before it has failed.
    #[serde(with = "humantime_serde")]
    pub retry_for: Duration,
    /// Whether a replica that starts makes the container where it is missing.
    pub create_container: bool,
}

/// Who a process without a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AzureIdentity {
    /// A workload, by a federated token in a file (AKS).
    Workload,
    /// The machine, by its metadata service.
    Managed,
}

impl Default for AzureSettings {
    fn default() -> Self {
        let limits = AzureLimits::default();
        Self {
            container: None,
            prefix: None,
            account: None,
            endpoint: None,
            connection_string: None,
            connection_string_file: None,
            account_key: None,
            account_key_file: None,
            sas: None,
            sas_file: None,
            identity: None,
            client_id: None,
            tenant_id: None,
            token_file: None,
            authority: None,
            request_timeout: limits.request,
            retry_for: limits.patience,
            create_container: false,
        }
    }
}

impl AzureSettings {
    /// Takes from the platform's variables what a workload's identity is and no key says.
    pub(super) fn fill_from(&mut self, variable: impl Fn(&str) -> Option<String>) {
        if self.identity != Some(AzureIdentity::Workload) {
            return;
        }
        let fill = |setting: &mut Option<String>, name| {
            if setting.is_none() {
                *setting = variable(name);
            }
        };
        fill(&mut self.client_id, CLIENT_ID);
        fill(&mut self.tenant_id, TENANT_ID);
        fill(&mut self.authority, AUTHORITY);
        if self.token_file.is_none() {
            self.token_file = variable(TOKEN_FILE).map(PathBuf::from);
        }
    }

    /// The options of these settings, checked. Reads the files that they name; nothing else is reached.
    pub fn options(&self, edges: &Edges) -> Result<AzureOptions, ConfigError> {
        let Some(container) = &self.container else {
            return Err(unusable("azure.container", "it is not set"));
        };
        let (credential, way) = self.credential()?;
        self.check_beside(way)?;
        let prefix: Option<Result<BlobPrefix, _>> = self.prefix.as_deref().map(str::parse);
        let prefix = prefix.transpose().map_err(|error| unusable("azure.prefix", error.to_string()))?;
        if self.request_timeout > self.retry_for {
            return Err(unusable(
                "azure.request_timeout",
                format!("{:?} is longer than `azure.retry_for` ({:?})", self.request_timeout, self.retry_for),
            ));
        }
        let (timer, clock, entropy) =
            (Arc::clone(&edges.timer), Arc::clone(&edges.clock), Arc::clone(&edges.entropy));
        let mut options = AzureOptions::new(credential, container, timer, clock, entropy);
        options.account.clone_from(&self.account);
        options.endpoint.clone_from(&self.endpoint);
        options.prefix = prefix;
        options.limits.request = self.request_timeout;
        options.limits.patience = self.retry_for;
        AzureStore::connect(options.clone()).map_err(|error| named(way, error))?;
        Ok(options)
    }

    /// The one way in, and its key.
    fn credential(&self) -> Result<(AzureCredential, &'static str), ConfigError> {
        let secrets = self.secrets();
        let mut set = Vec::new();
        for (secret, _) in &secrets {
            set.extend(secret.key_set()?);
        }
        set.extend(self.identity.map(|_| "azure.identity"));
        match set[..] {
            [_] => {}
            [] => return Err(unusable("azure", format!("there is no way in: set one of {WAYS}"))),
            [one, other, ..] => {
                return Err(unusable(
                    other,
                    format!("`{one}` is set too: there is one way in, leave the other out"),
                ));
            }
        }
        for (secret, of) in secrets {
            if let Some((text, key)) = secret.read()? {
                return Ok((of(Secret::from(text.reveal())), key));
            }
        }
        let credential = match self.identity {
            Some(AzureIdentity::Workload) => self.workload()?,
            _ => AzureCredential::ManagedIdentity { client_id: self.client_id.clone(), endpoint: None },
        };
        Ok((credential, "azure.identity"))
    }

    /// The ways in that are secrets, and what each of them becomes.
    fn secrets(&self) -> [(SecretSetting<'_>, WayIn); 3] {
        let connection_string = SecretSetting {
            key: "azure.connection_string",
            text: self.connection_string.as_ref(),
            file_key: "azure.connection_string_file",
            file: self.connection_string_file.as_deref(),
        };
        let account_key = SecretSetting {
            key: "azure.account_key",
            text: self.account_key.as_ref(),
            file_key: "azure.account_key_file",
            file: self.account_key_file.as_deref(),
        };
        let sas = SecretSetting {
            key: "azure.sas",
            text: self.sas.as_ref(),
            file_key: "azure.sas_file",
            file: self.sas_file.as_deref(),
        };
        [
            (connection_string, AzureCredential::ConnectionString),
            (account_key, AzureCredential::AccountKey),
            (sas, AzureCredential::Sas),
        ]
    }

    fn workload(&self) -> Result<AzureCredential, ConfigError> {
        let missing = |key, variable| {
            let detail = format!(
                "a workload's identity needs it, and {variable} is not set either: is the pod labelled \
                 azure.workload.identity/use=true, and its service account annotated?"
            );
            unusable(key, detail)
        };
        let client_id = self.client_id.clone().ok_or_else(|| missing("azure.client_id", CLIENT_ID))?;
        let tenant_id = self.tenant_id.clone().ok_or_else(|| missing("azure.tenant_id", TENANT_ID))?;
        let token_file = self.token_file.clone().ok_or_else(|| missing("azure.token_file", TOKEN_FILE))?;
        if read_file("azure.token_file", &token_file)?.is_empty() {
            return Err(unusable("azure.token_file", format!("{} is empty", token_file.display())));
        }
        let authority = self.authority.clone();
        Ok(AzureCredential::WorkloadIdentity { tenant_id, client_id, token_file, authority })
    }

    /// Refuses what means nothing beside the way in.
    fn check_beside(&self, way: &str) -> Result<(), ConfigError> {
        let is_workload = self.identity == Some(AzureIdentity::Workload);
        let beside = [
            ("azure.client_id", self.client_id.is_some() && self.identity.is_none()),
            ("azure.tenant_id", self.tenant_id.is_some() && !is_workload),
            ("azure.token_file", self.token_file.is_some() && !is_workload),
            ("azure.authority", self.authority.is_some() && !is_workload),
            ("azure.account", self.account.is_some() && way.starts_with("azure.connection_string")),
        ];
        match beside.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(unusable(key, format!("it means nothing beside `{way}`: leave it out"))),
            None => Ok(()),
        }
    }
}

/// The store's refusal with the key that it is about.
fn named(way: &'static str, error: BlobError) -> ConfigError {
    let BlobError::Settings { setting, detail } = error else { return unusable(way, error.to_string()) };
    let key = match setting {
        "container" => "azure.container",
        "account" => "azure.account",
        "endpoint" => "azure.endpoint",
        "authority" => "azure.authority",
        "tenant id" => "azure.tenant_id",
        "client id" => "azure.client_id",
        _ => way,
    };
    unusable(key, detail)
}

fn unusable(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Unusable { key, detail: detail.into() }
}
