-- People by wallet: the last link for each, and the first invitation. Links of operators stay in person_links.

CREATE TABLE person_wallet_links (
    id holdfast_id NOT NULL UNIQUE,
    person_id holdfast_id NOT NULL REFERENCES people (id),
    token holdfast_digest NOT NULL UNIQUE,
    purpose TEXT NOT NULL CHECK (purpose IN ('accept', 'set_password')),
    role TEXT CHECK (length(role) > 0),
    wallet_id holdfast_id NOT NULL REFERENCES wallets (id),
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    created_by holdfast_name NOT NULL,
    PRIMARY KEY (person_id, wallet_id),
    CONSTRAINT person_wallet_link_role CHECK ((role IS NOT NULL) = (purpose = 'accept'))
);

CREATE INDEX person_wallet_links_of_wallet ON person_wallet_links (wallet_id);

CREATE TABLE person_invitations (
    person_id holdfast_id NOT NULL REFERENCES people (id),
    wallet_id holdfast_id NOT NULL REFERENCES wallets (id),
    -- null if none was given, and once it is erased
    name TEXT CHECK (length(name) > 0),
    invited_at BIGINT NOT NULL,
    invited_by holdfast_name NOT NULL,
    PRIMARY KEY (person_id, wallet_id)
);
