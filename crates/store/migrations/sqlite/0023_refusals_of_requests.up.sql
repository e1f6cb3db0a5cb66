-- Requests that were refused: the newest of each API key in a ring of slots, and the number of all of them by the hour.
-- Statistics of known API keys, added about once a second by each process. Nothing of a prompt, and no model that the
-- configuration does not have.

CREATE TABLE refusals (
    seq INTEGER PRIMARY KEY,
    request_id BLOB NOT NULL UNIQUE CHECK (length(request_id) = 16),
    api_key_id BLOB NOT NULL CHECK (length(api_key_id) = 16),
    slot INTEGER NOT NULL CHECK (slot >= 0),
    wallet_id BLOB NOT NULL CHECK (length(wallet_id) = 16),
    refused_at INTEGER NOT NULL,
    code TEXT NOT NULL CHECK (length(code) > 0),
    status INTEGER NOT NULL CHECK (status BETWEEN 400 AND 599),
    model TEXT CHECK (length(model) BETWEEN 3 AND 128),
    -- the hold that the request needed, and the rest of the balance or of the limit
    wanted INTEGER CHECK (wanted >= 0),
    available INTEGER CHECK (available IS NULL OR (available >= 0 AND wanted IS NOT NULL)),
    UNIQUE (api_key_id, slot)
) STRICT;

CREATE INDEX refusals_of_wallet ON refusals (wallet_id, seq);

CREATE TABLE refusal_hours (
    wallet_id BLOB NOT NULL CHECK (length(wallet_id) = 16),
    -- the moment at which the hour begins
    hour INTEGER NOT NULL CHECK (hour % 3600000000 = 0),
    api_key_id BLOB NOT NULL CHECK (length(api_key_id) = 16),
    code TEXT NOT NULL CHECK (length(code) > 0),
    count INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (wallet_id, hour, api_key_id, code)
) STRICT, WITHOUT ROWID;

CREATE INDEX refusal_hours_by_hour ON refusal_hours (hour);
