-- Webhooks, and each event on its way to each of them. A secret is derived and stands nowhere: a webhook has the number
-- of its generation, and names the server secrets of the last two. `kinds` are joined by commas; null is all of them.
--
-- `next_at` of a delivery is the end of its pause, or of the lease of the process that sends it: from then on anybody may.

CREATE TABLE webhooks (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    -- null for the operator's
    wallet_id BLOB REFERENCES wallets (id),
    url TEXT NOT NULL CHECK (length(url) > 0),
    kinds TEXT CHECK (length(kinds) > 0),
    description TEXT,
    generation INTEGER NOT NULL CHECK (generation > 0),
    rotated_at INTEGER,
    server_secret BLOB NOT NULL CHECK (length(server_secret) = 8),
    previous_secret BLOB CHECK (length(previous_secret) = 8),
    edited INTEGER NOT NULL DEFAULT 0 CHECK (edited >= 0),
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL CHECK (length(created_by) > 0),
    disabled_at INTEGER,
    disabled_reason TEXT CHECK (disabled_reason IN ('asked', 'gone', 'dead_in_a_row')),
    dead_in_a_row INTEGER NOT NULL DEFAULT 0 CHECK (dead_in_a_row >= 0),
    CONSTRAINT webhook_rotation CHECK ((rotated_at IS NULL) = (previous_secret IS NULL)),
    CONSTRAINT webhook_disabled CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
) STRICT;

CREATE INDEX webhooks_of_wallet ON webhooks (wallet_id, seq);

CREATE TABLE deliveries (
    seq INTEGER PRIMARY KEY,
    event_seq INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
    webhook_id BLOB NOT NULL REFERENCES webhooks (id),
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    tries INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at INTEGER,
    owner TEXT CHECK (length(owner) BETWEEN 1 AND 64),
    incarnation BLOB CHECK (length(incarnation) = 16),
    last_result TEXT,
    last_status INTEGER CHECK (last_status BETWEEN 100 AND 999),
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (event_seq, webhook_id),
    CONSTRAINT delivery_state CHECK ((next_at IS NOT NULL) = (state = 'pending')
        AND (finished_at IS NULL) = (state = 'pending')),
    CONSTRAINT delivery_lease CHECK ((owner IS NULL) = (incarnation IS NULL)
        AND (owner IS NULL OR state = 'pending'))
) STRICT;

CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_of_webhook ON deliveries (webhook_id, seq);
