-- Sums of operations that have finished, so that a report reads a row an hour and not each operation.
--
-- Operations are summed in the order of their numbers: `usage_summed` says how far that has come. One that
-- still runs when its number is passed is in `late_ends` until it is summed as well. One that is open then
-- may have a later generation: its beginning puts it there. So every operation that has finished is in
-- `usage_hours`, or in `late_ends`, or has a number that is not summed yet. Refunds are summed in the same way,
-- by the numbers of their postings, into the hour in which their operation finished.

CREATE TABLE usage_hours (
    wallet_id holdfast_id NOT NULL,
    -- the moment at which the hour begins
    hour BIGINT NOT NULL CHECK (hour % 3600000000 = 0),
    api_key_id holdfast_id NOT NULL,
    model TEXT NOT NULL,
    -- the route that was tried last; empty where none was
    route TEXT NOT NULL,
    completed holdfast_natural NOT NULL,
    refused holdfast_natural NOT NULL,
    abandoned holdfast_natural NOT NULL,
    estimated holdfast_natural NOT NULL,
    input holdfast_natural NOT NULL,
    cached_input holdfast_natural NOT NULL,
    cache_write holdfast_natural NOT NULL,
    audio_input holdfast_natural NOT NULL,
    output holdfast_natural NOT NULL,
    reasoning holdfast_natural NOT NULL,
    audio_output holdfast_natural NOT NULL,
    request holdfast_natural NOT NULL,
    image holdfast_natural NOT NULL,
    charge holdfast_natural NOT NULL,
    shortfall holdfast_natural NOT NULL,
    refunded holdfast_natural NOT NULL,
    exposure holdfast_natural NOT NULL,
    -- those whose cost is known, their cost, and what is left of their charges
    costed holdfast_natural NOT NULL,
    provider_cost holdfast_natural NOT NULL,
    margin BIGINT NOT NULL,
    PRIMARY KEY (wallet_id, hour, api_key_id, model, route)
);

CREATE INDEX usage_hours_by_hour ON usage_hours (hour);

CREATE TABLE late_ends (
    op_seq BIGINT PRIMARY KEY
);

-- The first numbers that are not summed yet, in one row. Who sums counts a step, and only where nobody else
-- has counted one since it read: so nothing is summed twice.
CREATE TABLE usage_summed (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    steps holdfast_natural NOT NULL,
    operations_to holdfast_natural NOT NULL,
    postings_to holdfast_natural NOT NULL
);

INSERT INTO usage_summed (one, steps, operations_to, postings_to) VALUES (1, 0, 0, 0);

-- With the rights of its owner: a gateway of the version before writes through it, and was granted nothing here.
CREATE FUNCTION holdfast_note_later_generation() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO late_ends (op_seq) VALUES (NEW.seq) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

-- No ending sets this column, so that none of them pays for it.
CREATE TRIGGER operations_note_later_generation
AFTER UPDATE OF generation ON operations
FOR EACH ROW
EXECUTE FUNCTION holdfast_note_later_generation();
