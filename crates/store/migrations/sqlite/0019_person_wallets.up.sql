-- People by wallet: the last link for each, and the first invitation. Links of operators stay in person_links.

CREATE TABLE person_wallet_links (
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    person_id BLOB NOT NULL REFERENCES people (id),
    token BLOB NOT NULL UNIQUE CHECK (length(token) = 32),
    purpose TEXT NOT NULL CHECK (purpose IN ('accept', 'set_password')),
    role TEXT CHECK (length(role) > 0),
    wallet_id BLOB NOT NULL REFERENCES wallets (id),
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    created_by TEXT NOT NULL CHECK (length(created_by) > 0),
    PRIMARY KEY (person_id, wallet_id),
    CONSTRAINT person_wallet_link_role CHECK ((role IS NOT NULL) = (purpose = 'accept'))
) STRICT;

CREATE INDEX person_wallet_links_of_wallet ON person_wallet_links (wallet_id);

CREATE TABLE person_invitations (
    person_id BLOB NOT NULL REFERENCES people (id),
    wallet_id BLOB NOT NULL REFERENCES wallets (id),
    -- null if none was given, and once it is erased
    name TEXT CHECK (length(name) > 0),
    invited_at INTEGER NOT NULL,
    invited_by TEXT NOT NULL CHECK (length(invited_by) > 0),
    PRIMARY KEY (person_id, wallet_id)
) STRICT;
