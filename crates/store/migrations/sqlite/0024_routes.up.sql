-- Statistics of routes, added about once a second by each process: attempts by the hour, the newest failures of each
-- route in a ring of slots, and the circuit breakers of each node. Notes of failures are for operators, and are in no
-- other table.

CREATE TABLE route_hours (
    -- the moment at which the hour begins
    hour INTEGER NOT NULL CHECK (hour % 3600000000 = 0),
    route TEXT NOT NULL CHECK (length(route) > 0),
    model TEXT NOT NULL CHECK (length(model) BETWEEN 3 AND 128),
    outcome TEXT NOT NULL CHECK (outcome IN ('answered', 'refused', 'cut', 'not_run', 'unknown')),
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    ms_sum INTEGER NOT NULL CHECK (ms_sum >= 0),
    -- counts by fixed bounds of latency, in their order
    buckets TEXT NOT NULL,
    first_token_buckets TEXT NOT NULL,
    failing_since INTEGER,
    last_at INTEGER NOT NULL,
    last_error TEXT CHECK (length(last_error) <= 512),
    PRIMARY KEY (hour, route, model, outcome)
) STRICT, WITHOUT ROWID;

CREATE INDEX route_hours_of_route ON route_hours (route, hour);

CREATE TABLE route_failures (
    route TEXT NOT NULL CHECK (length(route) > 0),
    slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 19),
    failed_at INTEGER NOT NULL,
    model TEXT NOT NULL CHECK (length(model) BETWEEN 3 AND 128),
    class TEXT NOT NULL CHECK (length(class) > 0),
    error TEXT NOT NULL CHECK (length(error) <= 512),
    PRIMARY KEY (route, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE route_states (
    node TEXT NOT NULL REFERENCES nodes (name) ON DELETE CASCADE,
    -- the process that wrote it: a successor of that name knows nothing of it
    incarnation BLOB NOT NULL CHECK (length(incarnation) = 16),
    route TEXT NOT NULL CHECK (length(route) > 0),
    state TEXT NOT NULL CHECK (state IN ('healthy', 'open')),
    since INTEGER NOT NULL,
    retry_at INTEGER,
    successes_since INTEGER NOT NULL CHECK (successes_since >= 0),
    PRIMARY KEY (node, route)
) STRICT, WITHOUT ROWID;
