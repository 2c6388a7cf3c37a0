-- The lease store's tables as they stand: the sum of the migrations beside this file, by test. Nothing applies this file.

-- One row per tenant, for ever: a forgotten tenant's row stays and keeps the epoch rising.
-- While paused_at is set nobody is given the lease, but to forget the tenant.
-- Renewals change expires_at alone. No index has it, and half of each page is left free: so they stay heap-only.
CREATE TABLE lease (
    lease_key    text COLLATE "C" NOT NULL,
    epoch        bigint           NOT NULL,
    owner        text COLLATE "C",
    tenure_id    uuid,
    expires_at   timestamptz,
    forget_floor bigint           NOT NULL DEFAULT 0,
    forgotten_at timestamptz,
    recheck_at   timestamptz,
    receipt      text,
    paused_at    timestamptz,
    CONSTRAINT lease_pkey PRIMARY KEY (lease_key),
    CONSTRAINT lease_epoch CHECK (epoch >= 1),
    CONSTRAINT lease_owner CHECK (num_nonnulls(owner, tenure_id, expires_at) IN (0, 3)),
    CONSTRAINT lease_floor CHECK (forget_floor BETWEEN 0 AND epoch),
    CONSTRAINT lease_forgotten CHECK ((forget_floor = 0) = (forgotten_at IS NULL)),
    CONSTRAINT lease_recheck CHECK (recheck_at IS NULL OR forget_floor > 0),
    CONSTRAINT lease_receipt CHECK (receipt IS NULL OR forget_floor > 0)
) WITH (fillfactor = 50);

CREATE INDEX lease_due ON lease (recheck_at, lease_key) WHERE recheck_at IS NOT NULL;

-- What replicas say of themselves: for forwarding and placement, never for safety.
CREATE TABLE replica (
    replica_id   text COLLATE "C" NOT NULL,
    instance     uuid             NOT NULL,
    endpoint     text,
    draining     boolean          NOT NULL,
    open_tenants bigint           NOT NULL,
    seen_at      timestamptz      NOT NULL,
    CONSTRAINT replica_pkey PRIMARY KEY (replica_id),
    CONSTRAINT replica_open_tenants CHECK (open_tenants >= 0)
) WITH (fillfactor = 50);

-- `derivation_key`: the fingerprint of the key by which tenant ids are derived; the first one is kept for ever.
CREATE TABLE settings (
    name  text COLLATE "C" NOT NULL,
    value text             NOT NULL,
    CONSTRAINT settings_pkey PRIMARY KEY (name)
);

-- API tokens, as hashes. Two at the most of each name, so that one can be exchanged for the next while services use either. A token
-- that is not here is let in nowhere.
CREATE TABLE token (
    name          text COLLATE "C" NOT NULL,
    slot          smallint         NOT NULL,
    token_id      text COLLATE "C" NOT NULL,
    hash          bytea            NOT NULL,
    organizations text             NOT NULL,
    scopes        text             NOT NULL,
    created_at    timestamptz      NOT NULL,
    expires_at    timestamptz      NOT NULL,
    CONSTRAINT token_pkey PRIMARY KEY (name, slot),
    CONSTRAINT token_id UNIQUE (token_id),
    CONSTRAINT token_slot CHECK (slot IN (1, 2)),
    CONSTRAINT token_hash CHECK (length(hash) = 32)
);
