-- What people set on wallets and API keys, admin keys, and the trail of every change.

ALTER TABLE wallets ADD COLUMN external_id TEXT CHECK (length(external_id) > 0);
ALTER TABLE wallets ADD COLUMN low_balance INTEGER CHECK (low_balance >= 0);
ALTER TABLE wallets ADD COLUMN key_spend INTEGER CHECK (key_spend >= 0);
ALTER TABLE wallets ADD COLUMN key_spend_window TEXT
    CHECK (key_spend_window IN ('total', 'day', 'month'));
ALTER TABLE wallets ADD COLUMN edited INTEGER NOT NULL DEFAULT 0 CHECK (edited >= 0);
ALTER TABLE wallets ADD COLUMN suspended_at INTEGER;
ALTER TABLE wallets ADD COLUMN closed_at INTEGER;
CREATE UNIQUE INDEX wallets_external ON wallets (external_id) WHERE external_id IS NOT NULL;
CREATE TRIGGER wallets_stay_closed BEFORE UPDATE OF closed_at ON wallets
WHEN OLD.closed_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a closed wallet stays closed'); END;

ALTER TABLE api_keys ADD COLUMN external_id TEXT CHECK (length(external_id) > 0);
ALTER TABLE api_keys ADD COLUMN usage TEXT NOT NULL DEFAULT 'key'
    CHECK (usage IN ('key', 'wallet'));
ALTER TABLE api_keys ADD COLUMN edited INTEGER NOT NULL DEFAULT 0 CHECK (edited >= 0);
ALTER TABLE api_keys ADD COLUMN suspended_at INTEGER;
CREATE UNIQUE INDEX api_keys_external ON api_keys (wallet_id, external_id)
WHERE external_id IS NOT NULL;

-- What a posting says beside its money, one row a posting. A payment from outside is booked once.
CREATE TABLE posting_details (
    posting_id BLOB PRIMARY KEY NOT NULL REFERENCES postings (id),
    source TEXT CHECK (length(source) > 0),
    external_reference TEXT CHECK (length(external_reference) > 0),
    reason TEXT CHECK (length(reason) > 0),
    note TEXT CHECK (length(note) > 0),
    CHECK ((source IS NULL) = (external_reference IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX posting_details_reference ON posting_details (source, external_reference)
WHERE source IS NOT NULL;
CREATE TRIGGER posting_details_never_change BEFORE UPDATE ON posting_details
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
CREATE TRIGGER posting_details_stay BEFORE DELETE ON posting_details
BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;

CREATE TABLE admin_keys (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    name TEXT NOT NULL CHECK (length(name) > 0),
    role TEXT NOT NULL CHECK (length(role) > 0),
    wallet_id BLOB REFERENCES wallets (id),
    ends_at INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL CHECK (length(created_by) > 0),
    revoked_at INTEGER
) STRICT;

CREATE UNIQUE INDEX admin_keys_name ON admin_keys (name) WHERE revoked_at IS NULL;
CREATE TRIGGER admin_keys_keep_identity
BEFORE UPDATE OF seq, id, role, wallet_id, created_at, created_by ON admin_keys
BEGIN SELECT RAISE(ABORT, 'an admin key keeps its identity and role'); END;
CREATE TRIGGER admin_keys_stay_revoked BEFORE UPDATE OF revoked_at ON admin_keys
WHEN OLD.revoked_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked admin key stays revoked'); END;
CREATE TRIGGER admin_keys_stay BEFORE DELETE ON admin_keys
BEGIN SELECT RAISE(ABORT, 'admin keys are never deleted'); END;

CREATE TABLE admin_credentials (
    id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    admin_key_id BLOB NOT NULL REFERENCES admin_keys (id),
    verifier BLOB NOT NULL CHECK (length(verifier) = 32),
    server_secret BLOB NOT NULL CHECK (length(server_secret) = 8),
    created_at INTEGER NOT NULL,
    ends_at INTEGER
) STRICT;

CREATE INDEX admin_credentials_of_key ON admin_credentials (admin_key_id);
CREATE TRIGGER admin_credentials_keep_identity
BEFORE UPDATE OF id, admin_key_id, verifier, server_secret, created_at ON admin_credentials
BEGIN SELECT RAISE(ABORT, 'only the end of a credential changes'); END;

-- Requests that were done, for ever: what a repetition is answered by. `things` are kinds and ids,
-- as `wallet:<id>`, with commas between them.
CREATE TABLE admin_requests (
    actor TEXT NOT NULL CHECK (length(actor) > 0),
    request_key BLOB NOT NULL CHECK (length(request_key) = 16),
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    things TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (actor, request_key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER admin_requests_never_change BEFORE UPDATE ON admin_requests
BEGIN SELECT RAISE(ABORT, 'a request key is bound for ever'); END;
CREATE TRIGGER admin_requests_stay BEFORE DELETE ON admin_requests
BEGIN SELECT RAISE(ABORT, 'a request key is bound for ever'); END;

-- The trail: `seq` has no gaps, and each MAC covers the row and the MAC before. `changes` is JSON,
-- a list of [field, before, after].
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    created_at INTEGER NOT NULL,
    actor TEXT NOT NULL CHECK (length(actor) > 0),
    use_case TEXT NOT NULL CHECK (length(use_case) > 0),
    thing_kind TEXT NOT NULL CHECK (length(thing_kind) > 0),
    thing_id BLOB NOT NULL CHECK (length(thing_id) = 16),
    request_key BLOB NOT NULL CHECK (length(request_key) = 16),
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    changes TEXT NOT NULL,
    reason TEXT CHECK (length(reason) > 0),
    server_secret BLOB NOT NULL CHECK (length(server_secret) = 8),
    mac BLOB NOT NULL CHECK (length(mac) = 32)
) STRICT;

CREATE INDEX audit_of_thing ON audit (thing_id, seq);
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the trail is append-only'); END;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the trail is append-only'); END;

-- Network addresses of actors: beside the trail, because they are deleted after a while.
CREATE TABLE audit_addresses (
    audit_seq INTEGER PRIMARY KEY,
    address TEXT NOT NULL CHECK (length(address) > 0)
) STRICT;

-- One row. Every command takes it first, so that commands come one after the other.
CREATE TABLE audit_head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL CHECK (seq >= 0),
    mac BLOB NOT NULL CHECK (length(mac) = 32)
) STRICT;

INSERT INTO audit_head (id, seq, mac) VALUES (1, 0, zeroblob(32));
CREATE TRIGGER audit_head_stays BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the trail keeps its head'); END;
CREATE TRIGGER audit_head_goes_on BEFORE UPDATE ON audit_head WHEN NEW.seq <= OLD.seq
BEGIN SELECT RAISE(ABORT, 'the head of the trail only goes on'); END;

-- A digest of the settings that the process runs under, so that nodes whose files differ are seen.
ALTER TABLE nodes ADD COLUMN settings BLOB CHECK (length(settings) = 32);
