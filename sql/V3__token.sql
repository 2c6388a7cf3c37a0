-- The lease store, version 3: API tokens, as hashes. Two at the most of each name, so that one can be exchanged for the next while
-- services use either. A token that is not here is let in nowhere.
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
