//! The keys by name: what a file may hold, and, with `LEASEHOLD_` before it and `__` for each dot, the environment.

/// Every key with its meaning, in the order of the documentation.
pub const CONFIG_KEYS: &[(&str, &str)] = &[
    ("listen", "address to listen on"),
    ("endpoint", "URL under which this replica is reached"),
    ("data_dir", "directory of what this machine keeps"),
    ("replica", "this replica's id"),
    ("ttl", "how long a lease runs after a renewal"),
    ("margin", "how much earlier a replica counts its own lease as run out"),
    ("renew_every", "how often leases are renewed"),
    ("drain_timeout", "how long a handoff waits for work in flight"),
    ("grace_period", "how long a shutdown may take"),
    ("idle_after", "after how long without a call a tenant is handed off"),
    ("derivation_key_file", "file with the key by which tenant ids are derived"),
    ("postgres.url", "connection string of the lease store"),
    ("postgres.url_file", "file that holds it"),
    ("postgres.schema", "schema of the lease tables"),
    ("postgres.pool_max", "connections of one replica, beside two for renewals"),
    ("postgres.sslmode", "disable, prefer, require, verify-ca or verify-full"),
    ("postgres.sslrootcert", "PEM file of the roots that are trusted"),
    ("postgres.connect_timeout", "how long a connection may take to be ready"),
    ("postgres.statement_timeout", "how long a call waits for a connection or an answer"),
    ("postgres.lock_timeout", "how long a statement waits for a row"),
    ("postgres.migrate", "whether serve brings the tables to its version"),
    ("azure.container", "container of the images"),
    ("azure.prefix", "what every object's name begins with"),
    ("azure.account", "storage account"),
    ("azure.endpoint", "the blob service's address"),
    ("azure.connection_string", "a way in: the connection string"),
    ("azure.connection_string_file", "file that holds it"),
    ("azure.account_key", "a way in: a key of the account"),
    ("azure.account_key_file", "file that holds it"),
    ("azure.sas", "a way in: a shared access signature"),
    ("azure.sas_file", "file that holds it"),
    ("azure.identity", "a way in without a secret: workload or managed"),
    ("azure.client_id", "the identity's client id"),
    ("azure.tenant_id", "a workload's directory"),
    ("azure.token_file", "where the platform keeps a workload's token"),
    ("azure.authority", "who exchanges a workload's token"),
    ("azure.request_timeout", "how long one attempt of a request may take"),
    ("azure.retry_for", "how long a request is repeated"),
    ("azure.create_container", "whether serve makes a missing container"),
    ("snapshot.every", "how often a written tenant is published"),
    ("snapshot.unflushed_bytes_max", "publish at this many unpublished bytes"),
    ("snapshot.uploads_max", "uploads side by side"),
    ("snapshot.upload_timeout", "how long one upload may take"),
    ("snapshot.close_concurrency", "tenants handed off side by side at the end"),
    ("limits.body_bytes_max", "bytes of a body"),
    ("limits.import_bytes_max", "bytes of an imported ledger"),
    ("limits.ledger_bytes_max", "bytes of a tenant's ledger"),
    ("limits.body_time_max", "how long a body may take to arrive"),
    ("limits.batch_events_max", "events of a batch"),
    ("limits.page_events_max", "events of a page"),
    ("limits.rows_max", "rows of a result"),
    ("limits.result_bytes_max", "bytes of a result"),
    ("limits.statement_time_max", "how long a statement may run"),
    ("limits.in_flight_max", "requests at work"),
    ("limits.in_flight_per_tenant_max", "requests at work for one tenant"),
    ("limits.in_flight_per_caller_max", "requests at work for one caller"),
    ("limits.rate_per_caller", "requests a second of one caller"),
    ("limits.rate_per_tenant", "requests a second for one tenant"),
    ("limits.rate_burst", "for how long of a rate may come at once"),
    ("limits.rate_keys_max", "callers and tenants that are counted"),
    ("limits.parked_max", "requests that wait for a tenant to settle"),
    ("limits.timeout_max", "the longest Leasehold-Timeout"),
    ("limits.connections_max", "open connections"),
    ("limits.connections_per_peer_max", "open connections of one address"),
    ("limits.head_time_max", "how long the head of a request may take"),
    ("limits.keep_alive_time_max", "how long a connection may wait for its next request"),
    ("limits.stall_time_max", "how long a client may take nothing of its answer"),
    ("limits.open_tenants_max", "tenants open at the same time"),
    ("follow.heartbeat_every", "how often a quiet stream sends a comment"),
    ("follow.followers_max", "streams"),
    ("follow.followers_per_tenant_max", "streams of one tenant"),
    ("peers.secret_file", "file with the secret by which replicas forward to one another"),
    ("peers.connect_timeout", "how long a connection to another replica may take"),
    ("placement.enabled", "whether a tenant that nobody holds is opened where it belongs"),
    ("placement.load_slack", "how far above the even share a replica may be"),
    ("placement.rebalance", "whether replicas hand tenants over so that each has its share"),
    ("placement.moves_max", "tenants handed over side by side"),
    ("placement.moves_pause", "how long until the next ones"),
    ("placement.warm_within", "how lately used a tenant is that is opened elsewhere at a drain"),
    ("auth.mode", "none (loopback only) or none-acknowledged"),
    ("log.format", "text or json"),
    ("log.filter", "what is logged"),
];

/// The environment variable of a key.
#[cfg(test)]
pub(crate) fn variable_of(key: &str) -> String {
    format!("LEASEHOLD_{}", key.to_ascii_uppercase().replace('.', "__"))
}

/// Whether keys begin with this name and a dot.
pub(crate) fn is_section(name: &str) -> bool {
    CONFIG_KEYS.iter().any(|(key, _)| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

pub(crate) fn is_key(key: &str) -> bool {
    CONFIG_KEYS.iter().any(|(known, _)| *known == key)
}
