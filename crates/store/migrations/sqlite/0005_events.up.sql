-- What people and their machines are told of: each row stands in the transaction of what it tells. `data` is a JSON
-- object in the words of the API. Rows are deleted after `retention.events`.

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    kind TEXT NOT NULL CHECK (length(kind) > 0),
    wallet_id BLOB REFERENCES wallets (id),
    created_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    is_fanned_out INTEGER NOT NULL DEFAULT 0 CHECK (is_fanned_out IN (0, 1))
) STRICT;

CREATE INDEX events_to_fan_out ON events (seq) WHERE is_fanned_out = 0;
CREATE INDEX events_of_wallet ON events (wallet_id, seq) WHERE wallet_id IS NOT NULL;
CREATE INDEX events_by_age ON events (created_at);
