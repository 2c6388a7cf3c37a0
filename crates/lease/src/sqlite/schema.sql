-- The lease store's format 3. Times ending in `_boot_ms` are milliseconds of CLOCK_BOOTTIME of the boot that `meta` names,
-- those ending in `_wall_ms` are milliseconds since 1970-01-01T00:00:00Z.

-- `format`: this number. `boot`: the machine's boot to which the boot times belong. `derivation_key`: its fingerprint.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per tenant, for ever: a forgotten tenant's row stays and keeps the epoch rising.
-- While paused_wall_ms is set nobody is given the lease, but to forget the tenant.
CREATE TABLE lease (
    lease_key         TEXT    NOT NULL PRIMARY KEY,
    epoch             INTEGER NOT NULL CHECK (epoch >= 1),
    owner             TEXT,
    tenure_id         TEXT,
    expires_boot_ms   INTEGER NOT NULL,
    forget_floor      INTEGER NOT NULL DEFAULT 0 CHECK (forget_floor BETWEEN 0 AND epoch),
    forgotten_wall_ms INTEGER,
    recheck_wall_ms   INTEGER,
    receipt           TEXT,
    paused_wall_ms    INTEGER,
    CHECK ((owner IS NULL) = (tenure_id IS NULL)),
    CHECK ((forget_floor = 0) = (forgotten_wall_ms IS NULL)),
    CHECK (recheck_wall_ms IS NULL OR forget_floor > 0),
    CHECK (receipt IS NULL OR forget_floor > 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_recheck ON lease (recheck_wall_ms) WHERE recheck_wall_ms IS NOT NULL;

-- What replicas say of themselves: for forwarding and placement, never for safety.
CREATE TABLE replica (
    replica_id   TEXT    NOT NULL PRIMARY KEY,
    instance     TEXT    NOT NULL,
    endpoint     TEXT,
    draining     INTEGER NOT NULL CHECK (draining IN (0, 1)),
    open_tenants INTEGER NOT NULL CHECK (open_tenants >= 0),
    seen_boot_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- API tokens, as hashes: two at the most of each name, so that one can be exchanged for the next. Who is not here is let in nowhere.
CREATE TABLE token (
    name            TEXT    NOT NULL,
    slot            INTEGER NOT NULL CHECK (slot IN (1, 2)),
    token_id        TEXT    NOT NULL UNIQUE,
    hash            BLOB    NOT NULL CHECK (length(hash) = 32),
    organizations   TEXT    NOT NULL,
    scopes          TEXT    NOT NULL,
    created_wall_ms INTEGER NOT NULL,
    expires_wall_ms INTEGER NOT NULL,
    PRIMARY KEY (name, slot)
) STRICT, WITHOUT ROWID;
