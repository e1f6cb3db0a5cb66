-- People: what they may, how they sign in, and their sessions. Neither a token nor a password stands here, but their
-- hashes. `wallet_id` is null for a role that is for all wallets.

CREATE TABLE people (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    -- null once it is erased, and for the first owner until they give one
    email TEXT CHECK (length(email) BETWEEN 3 AND 254),
    name TEXT CHECK (length(name) > 0),
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL CHECK (length(created_by) > 0),
    ended_at INTEGER
) STRICT;

CREATE UNIQUE INDEX people_email ON people (email) WHERE ended_at IS NULL;
CREATE TRIGGER people_keep_identity BEFORE UPDATE OF seq, id, created_at, created_by ON people
BEGIN SELECT RAISE(ABORT, 'a person keeps their identity'); END;
CREATE TRIGGER people_stay_ended BEFORE UPDATE ON people
WHEN OLD.ended_at IS NOT NULL AND NEW.ended_at IS NOT OLD.ended_at
BEGIN SELECT RAISE(ABORT, 'an ended person stays ended'); END;
CREATE TRIGGER people_stay BEFORE DELETE ON people
BEGIN SELECT RAISE(ABORT, 'people are never deleted'); END;

CREATE TABLE person_grants (
    seq INTEGER PRIMARY KEY,
    person_id BLOB NOT NULL REFERENCES people (id),
    role TEXT NOT NULL CHECK (length(role) > 0),
    wallet_id BLOB REFERENCES wallets (id),
    granted_at INTEGER NOT NULL,
    granted_by TEXT NOT NULL CHECK (length(granted_by) > 0)
) STRICT;

CREATE UNIQUE INDEX person_grants_once ON person_grants (person_id, role, wallet_id)
WHERE wallet_id IS NOT NULL;
CREATE UNIQUE INDEX person_grants_once_for_all ON person_grants (person_id, role)
WHERE wallet_id IS NULL;
CREATE INDEX person_grants_of_wallet ON person_grants (wallet_id) WHERE wallet_id IS NOT NULL;
CREATE TRIGGER person_grants_never_change BEFORE UPDATE ON person_grants
BEGIN SELECT RAISE(ABORT, 'a grant is made and ended, and never changed'); END;

-- The last link of a person: a later one takes its place.
CREATE TABLE person_links (
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    person_id BLOB PRIMARY KEY NOT NULL REFERENCES people (id),
    token BLOB NOT NULL UNIQUE CHECK (length(token) = 32),
    purpose TEXT NOT NULL CHECK (purpose IN ('accept', 'set_password', 'first_owner')),
    role TEXT CHECK (length(role) > 0),
    wallet_id BLOB REFERENCES wallets (id),
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    created_by TEXT NOT NULL CHECK (length(created_by) > 0),
    CONSTRAINT person_link_role CHECK ((role IS NOT NULL) = (purpose = 'accept')
        AND (wallet_id IS NULL OR role IS NOT NULL))
) STRICT;

CREATE INDEX person_links_of_wallet ON person_links (wallet_id) WHERE wallet_id IS NOT NULL;

-- `hash` is a PHC text: its algorithm, costs and salt are in it.
CREATE TABLE person_passwords (
    person_id BLOB PRIMARY KEY NOT NULL REFERENCES people (id),
    hash TEXT NOT NULL CHECK (length(hash) > 0),
    set_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    person_id BLOB NOT NULL REFERENCES people (id),
    token BLOB NOT NULL UNIQUE CHECK (length(token) = 32),
    role TEXT NOT NULL CHECK (length(role) > 0),
    wallet_id BLOB REFERENCES wallets (id),
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    signed_in_at INTEGER NOT NULL,
    address TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_of_person ON sessions (person_id, created_at);
