-- Sums of operations that have finished, so that a report reads a row an hour and not each operation.
--
-- Operations are summed in the order of their numbers: `usage_summed` says how far that has come. One that
-- still runs when its number is passed is in `late_ends` until it is summed as well. One that is open then
-- may have a later generation: its beginning puts it there. So every operation that has finished is in
-- `usage_hours`, or in `late_ends`, or has a number that is not summed yet. Refunds are summed in the same way,
-- by the numbers of their postings, into the hour in which their operation finished.

CREATE TABLE usage_hours (
    wallet_id BLOB NOT NULL CHECK (length(wallet_id) = 16),
    -- the moment at which the hour begins
    hour INTEGER NOT NULL CHECK (hour % 3600000000 = 0),
    api_key_id BLOB NOT NULL CHECK (length(api_key_id) = 16),
    model TEXT NOT NULL,
    -- the route that was tried last; empty where none was
    route TEXT NOT NULL,
    completed INTEGER NOT NULL CHECK (completed >= 0),
    refused INTEGER NOT NULL CHECK (refused >= 0),
    abandoned INTEGER NOT NULL CHECK (abandoned >= 0),
    estimated INTEGER NOT NULL CHECK (estimated >= 0),
    input INTEGER NOT NULL CHECK (input >= 0),
    cached_input INTEGER NOT NULL CHECK (cached_input >= 0),
    cache_write INTEGER NOT NULL CHECK (cache_write >= 0),
    audio_input INTEGER NOT NULL CHECK (audio_input >= 0),
    output INTEGER NOT NULL CHECK (output >= 0),
    reasoning INTEGER NOT NULL CHECK (reasoning >= 0),
    audio_output INTEGER NOT NULL CHECK (audio_output >= 0),
    request INTEGER NOT NULL CHECK (request >= 0),
    image INTEGER NOT NULL CHECK (image >= 0),
    charge INTEGER NOT NULL CHECK (charge >= 0),
    shortfall INTEGER NOT NULL CHECK (shortfall >= 0),
    refunded INTEGER NOT NULL CHECK (refunded >= 0),
    exposure INTEGER NOT NULL CHECK (exposure >= 0),
    -- those whose cost is known, their cost, and what is left of their charges
    costed INTEGER NOT NULL CHECK (costed >= 0),
    provider_cost INTEGER NOT NULL CHECK (provider_cost >= 0),
    margin INTEGER NOT NULL,
    PRIMARY KEY (wallet_id, hour, api_key_id, model, route)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_hours_by_hour ON usage_hours (hour);

CREATE TABLE late_ends (
    op_seq INTEGER PRIMARY KEY
) STRICT;

-- The first numbers that are not summed yet, in one row. Who sums counts a step, and only where nobody else
-- has counted one since it read: so nothing is summed twice.
CREATE TABLE usage_summed (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    steps INTEGER NOT NULL CHECK (steps >= 0),
    operations_to INTEGER NOT NULL CHECK (operations_to >= 0),
    postings_to INTEGER NOT NULL CHECK (postings_to >= 0)
) STRICT;

INSERT INTO usage_summed (one, steps, operations_to, postings_to) VALUES (1, 0, 0, 0);

-- No ending sets this column, so that none of them pays for it.
CREATE TRIGGER operations_note_later_generation AFTER UPDATE OF generation ON operations
BEGIN INSERT OR IGNORE INTO late_ends (op_seq) VALUES (NEW.seq); END;
