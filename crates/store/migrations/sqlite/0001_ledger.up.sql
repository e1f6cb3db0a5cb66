-- Wallets, API keys, operations and the book. What the code promises about money is repeated here as
-- constraints, so that a bug or a hand at the SQL prompt is stopped by the database as well.
--
-- Ids are 16 raw bytes, amounts are micros of the wallet's currency, moments are microseconds since
-- 1970-01-01T00:00:00Z by this database's clock.

CREATE TABLE wallets (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    name TEXT NOT NULL UNIQUE CHECK (length(name) > 0),
    currency TEXT NOT NULL CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    available INTEGER NOT NULL CONSTRAINT wallet_available CHECK (available >= 0),
    held INTEGER NOT NULL CONSTRAINT wallet_held CHECK (held >= 0),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER wallets_keep_identity BEFORE UPDATE OF seq, id, currency, created_at ON wallets
BEGIN SELECT RAISE(ABORT, 'the identity and currency of a wallet never change'); END;
CREATE TRIGGER wallets_stay BEFORE DELETE ON wallets
BEGIN SELECT RAISE(ABORT, 'wallets are never deleted'); END;

CREATE TABLE api_keys (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    wallet_id BLOB NOT NULL REFERENCES wallets (id),
    name TEXT NOT NULL CHECK (length(name) > 0),
    requests_per_minute INTEGER CHECK (requests_per_minute >= 0),
    tokens_per_minute INTEGER CHECK (tokens_per_minute >= 0),
    concurrency INTEGER CHECK (concurrency >= 0),
    spend_micros INTEGER CHECK (spend_micros >= 0),
    spend_window TEXT CHECK (spend_window IN ('total', 'day', 'month')),
    -- public ids with commas between them; all models where it is missing
    models TEXT CHECK (length(models) > 0),
    balance TEXT NOT NULL CHECK (balance IN ('shown', 'hidden')),
    ends_at INTEGER,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    CHECK ((spend_micros IS NULL) = (spend_window IS NULL))
) STRICT;

-- Customers name their keys without asking each other.
CREATE UNIQUE INDEX api_keys_of_wallet ON api_keys (wallet_id, name);
CREATE TRIGGER api_keys_keep_identity BEFORE UPDATE OF seq, id, wallet_id, created_at ON api_keys
BEGIN SELECT RAISE(ABORT, 'the identity and wallet of an API key never change'); END;
CREATE TRIGGER api_keys_stay_revoked BEFORE UPDATE OF revoked_at ON api_keys
WHEN OLD.revoked_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked API key stays revoked'); END;
CREATE TRIGGER api_keys_stay BEFORE DELETE ON api_keys
BEGIN SELECT RAISE(ABORT, 'API keys are never deleted'); END;

CREATE TABLE credentials (
    id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    api_key_id BLOB NOT NULL REFERENCES api_keys (id),
    verifier BLOB NOT NULL CHECK (length(verifier) = 32),
    server_secret BLOB NOT NULL CHECK (length(server_secret) = 8),
    created_at INTEGER NOT NULL,
    ends_at INTEGER
) STRICT;

CREATE INDEX credentials_of_api_key ON credentials (api_key_id);
CREATE TRIGGER credentials_keep_identity
BEFORE UPDATE OF id, api_key_id, verifier, server_secret, created_at ON credentials
BEGIN SELECT RAISE(ABORT, 'only the end of a credential changes'); END;

-- Micros per million of each token kind, micros for each request and image.
CREATE TABLE prices (
    price_version TEXT PRIMARY KEY NOT NULL CHECK (length(price_version) > 0),
    currency TEXT NOT NULL CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    input INTEGER NOT NULL CHECK (input BETWEEN 0 AND 1000000000000000000),
    cached_input INTEGER NOT NULL CHECK (cached_input BETWEEN 0 AND 1000000000000000000),
    cache_write INTEGER NOT NULL CHECK (cache_write BETWEEN 0 AND 1000000000000000000),
    audio_input INTEGER NOT NULL CHECK (audio_input BETWEEN 0 AND 1000000000000000000),
    output INTEGER NOT NULL CHECK (output BETWEEN 0 AND 1000000000000000000),
    reasoning INTEGER NOT NULL CHECK (reasoning BETWEEN 0 AND 1000000000000000000),
    audio_output INTEGER NOT NULL CHECK (audio_output BETWEEN 0 AND 1000000000000000000),
    request INTEGER NOT NULL CHECK (request BETWEEN 0 AND 1000000000000000000),
    image INTEGER NOT NULL CHECK (image BETWEEN 0 AND 1000000000000000000),
    -- what longer prompts cost: a line for each tier, its threshold in prompt tokens, then its rates in the
    -- order of the columns
    tiers TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TRIGGER prices_never_change BEFORE UPDATE ON prices
BEGIN SELECT RAISE(ABORT, 'a price version never changes'); END;
CREATE TRIGGER prices_stay BEFORE DELETE ON prices
BEGIN SELECT RAISE(ABORT, 'price versions are never deleted'); END;

-- The hold, the usage record and the settlement of an operation are columns of its row: their ids
-- are functions of its id and generation. What it belongs to, and what belongs to it, has no foreign
-- key: none of these rows is ever deleted, the writer has the numbers and names from rows of the same
-- transaction, and looking them up again would be a large part of what a request costs.
-- `holdfast ledger verify` finds those that lead nowhere.
CREATE TABLE operations (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    api_key_id BLOB NOT NULL,
    request_key BLOB NOT NULL CHECK (length(request_key) = 16),
    wallet_id BLOB NOT NULL,
    model TEXT NOT NULL CHECK (length(model) BETWEEN 3 AND 128),
    server_secret BLOB NOT NULL CHECK (length(server_secret) = 8),
    fingerprint_version INTEGER NOT NULL CHECK (fingerprint_version >= 0),
    contract INTEGER NOT NULL CHECK (contract >= 0),
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    body_digest BLOB NOT NULL CHECK (length(body_digest) = 32),
    created_at INTEGER NOT NULL,
    -- of the generation
    generation INTEGER NOT NULL CHECK (generation >= 1),
    price_version TEXT NOT NULL,
    hold INTEGER NOT NULL CHECK (hold >= 0),
    -- what earlier generations held, all of which went back; missing in the first
    released INTEGER CHECK (released >= 0),
    reserved_counters INTEGER NOT NULL CHECK (reserved_counters BETWEEN 0 AND 255),
    reserved_tokens INTEGER NOT NULL CHECK (reserved_tokens >= 0),
    claim BLOB NOT NULL CHECK (length(claim) = 16),
    node TEXT NOT NULL CHECK (length(node) BETWEEN 1 AND 64),
    incarnation BLOB NOT NULL CHECK (length(incarnation) = 16),
    admitted_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL CHECK (deadline >= admitted_at),
    -- of the phase
    phase TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= generation),
    cancel_asked INTEGER NOT NULL CHECK (cancel_asked IN (0, 1)),
    attempts TEXT NOT NULL,
    input INTEGER CHECK (input BETWEEN 0 AND 1099511627776),
    cached_input INTEGER CHECK (cached_input BETWEEN 0 AND 1099511627776),
    cache_write INTEGER CHECK (cache_write BETWEEN 0 AND 1099511627776),
    audio_input INTEGER CHECK (audio_input BETWEEN 0 AND 1099511627776),
    output INTEGER CHECK (output BETWEEN 0 AND 1099511627776),
    reasoning INTEGER CHECK (reasoning BETWEEN 0 AND 1099511627776),
    audio_output INTEGER CHECK (audio_output BETWEEN 0 AND 1099511627776),
    request INTEGER CHECK (request BETWEEN 0 AND 1099511627776),
    image INTEGER CHECK (image BETWEEN 0 AND 1099511627776),
    meters_source TEXT CHECK (meters_source IN ('reported', 'estimated')),
    charge INTEGER CHECK (charge BETWEEN 0 AND hold),
    shortfall INTEGER CHECK (shortfall = 0 OR (shortfall > 0 AND charge = hold)),
    refusal TEXT CHECK (refusal IN ('request', 'context_length')),
    finished_at INTEGER,
    -- what the run cost the operator, in the currency of the wallet, where the route has a cost in it; no
    -- money of the ledger
    provider_cost INTEGER CONSTRAINT operation_provider_cost
        CHECK (provider_cost IS NULL OR (provider_cost >= 0 AND charge IS NOT NULL)),
    CONSTRAINT operation_phase CHECK (CASE phase
        WHEN 'leased' THEN finished_at IS NULL AND refusal IS NULL
        WHEN 'recorded' THEN finished_at IS NULL AND refusal IS NULL
        WHEN 'open' THEN finished_at IS NULL AND refusal IS NULL
        WHEN 'completed' THEN finished_at IS NOT NULL AND refusal IS NULL
        WHEN 'refused' THEN finished_at IS NOT NULL AND refusal IS NOT NULL
        WHEN 'abandoned' THEN finished_at IS NOT NULL AND refusal IS NULL
        ELSE FALSE
    END),
    -- The usage record is there, whole, exactly where something was metered.
    CONSTRAINT operation_usage CHECK (CASE
        WHEN phase IN ('recorded', 'completed') THEN meters_source IS NOT NULL AND
            input + cached_input + cache_write + audio_input + output + reasoning + audio_output
            + request + image + charge + shortfall IS NOT NULL
        ELSE coalesce(input, cached_input, cache_write, audio_input, output, reasoning,
            audio_output, request, image, charge, shortfall) IS NULL AND meters_source IS NULL
    END)
) STRICT;

-- Numbers are compared faster than labels, and what is read of this index is all of it.
CREATE INDEX operations_active ON operations (seq) WHERE phase IN ('leased', 'recorded');
CREATE INDEX operations_of_wallet ON operations (wallet_id);
CREATE INDEX operations_of_api_key ON operations (api_key_id);

-- Triggers on columns that the hot updates do not set cost those nothing.
CREATE TRIGGER operations_keep_binding
BEFORE UPDATE OF seq, id, api_key_id, request_key, wallet_id, model, server_secret,
    fingerprint_version, contract, fingerprint, body_digest, created_at ON operations
BEGIN SELECT RAISE(ABORT, 'what an operation is bound to never changes'); END;
CREATE TRIGGER operations_reopen_one_by_one BEFORE UPDATE OF generation ON operations
WHEN NEW.generation <> OLD.generation + 1 OR OLD.phase <> 'open' OR NEW.phase <> 'leased'
BEGIN SELECT RAISE(ABORT, 'only an open operation gets a next generation'); END;
CREATE TRIGGER operations_keep_generation
BEFORE UPDATE OF hold, released, price_version, reserved_counters, reserved_tokens, claim, node, incarnation,
    admitted_at, deadline ON operations
WHEN NEW.generation = OLD.generation
BEGIN SELECT RAISE(ABORT, 'what a generation was admitted with never changes'); END;
CREATE TRIGGER operations_stay BEFORE DELETE ON operations
BEGIN SELECT RAISE(ABORT, 'operations are never deleted'); END;

-- leg = 8 * generation + kind, and the kind says between which accounts it moves: 0 hold, from what is
-- available to what is held; 1 settle, from held to revenue; 2 rest, 3 release and 4 lapse, from held back to
-- available. A release is of what was refused or did not run, a lapse of what was given up. The key makes each
-- happen once.
CREATE TABLE transfers (
    op_seq INTEGER NOT NULL,
    leg INTEGER NOT NULL CHECK (leg >= 8 AND (leg & 7) <= 4),
    amount INTEGER NOT NULL CHECK (amount > 0),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (op_seq, leg)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER transfers_never_change BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;
CREATE TRIGGER transfers_stay BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are append-only'); END;

-- Sealed content, apart from its operation so that it can be purged. finished_at is missing while
-- the operation is recorded: such content is not purged.
CREATE TABLE results (
    op_seq INTEGER PRIMARY KEY,
    credential_id BLOB NOT NULL CHECK (length(credential_id) = 16),
    format INTEGER NOT NULL CHECK (format BETWEEN 0 AND 255),
    nonce BLOB NOT NULL CHECK (length(nonce) = 12),
    sealed BLOB NOT NULL,
    finished_at INTEGER
) STRICT;

CREATE INDEX results_by_age ON results (finished_at);
CREATE TRIGGER results_never_change
BEFORE UPDATE OF op_seq, credential_id, format, nonce, sealed ON results
BEGIN SELECT RAISE(ABORT, 'a result never changes'); END;
CREATE TRIGGER results_wait_for_settlement BEFORE DELETE ON results WHEN OLD.finished_at IS NULL
BEGIN SELECT RAISE(ABORT, 'a result is kept until it is settled'); END;

-- Money that moves without an operation running.
CREATE TABLE postings (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    wallet_id BLOB NOT NULL REFERENCES wallets (id),
    kind TEXT NOT NULL,
    operation_id BLOB REFERENCES operations (id),
    amount INTEGER NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL,
    CONSTRAINT posting_kind CHECK (CASE kind
        WHEN 'deposit' THEN amount > 0 AND operation_id IS NULL AND reason IS NULL
        WHEN 'refund' THEN amount > 0 AND operation_id IS NOT NULL AND reason IS NULL
        WHEN 'adjustment' THEN amount <> 0 AND operation_id IS NULL AND reason IS NOT NULL
        ELSE FALSE
    END)
) STRICT;

CREATE INDEX postings_of_wallet ON postings (wallet_id);
CREATE INDEX postings_of_operation ON postings (operation_id) WHERE operation_id IS NOT NULL;
CREATE TRIGGER postings_never_change BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
CREATE TRIGGER postings_stay BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;

-- counter: 0 requests, 1 tokens, 2 concurrency, 3 spend in total, 4 spend of a day, 5 of a month.
CREATE TABLE counters (
    api_key_id BLOB NOT NULL CHECK (length(api_key_id) = 16),
    counter INTEGER NOT NULL CHECK (counter BETWEEN 0 AND 7),
    window_start INTEGER NOT NULL,
    used INTEGER NOT NULL CHECK (used >= 0),
    PRIMARY KEY (api_key_id, counter, window_start)
) STRICT, WITHOUT ROWID;

CREATE INDEX counters_of_minutes ON counters (window_start) WHERE counter IN (0, 1);

CREATE TABLE nodes (
    name TEXT PRIMARY KEY NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    incarnation BLOB NOT NULL CHECK (length(incarnation) = 16),
    ends_at INTEGER NOT NULL,
    address TEXT CHECK (length(address) BETWEEN 3 AND 259)
) STRICT, WITHOUT ROWID;
