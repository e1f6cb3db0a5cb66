-- Statistics of routes, added about once a second by each process: attempts by the hour, the newest failures of each
-- route in a ring of slots, and the circuit breakers of each node. Notes of failures are for operators, and are in no
-- other table.

CREATE TABLE route_hours (
    -- the moment at which the hour begins
    hour BIGINT NOT NULL CHECK (hour % 3600000000 = 0),
    route TEXT NOT NULL CHECK (length(route) > 0),
    model holdfast_model NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('answered', 'refused', 'cut', 'not_run', 'unknown')),
    attempts holdfast_positive NOT NULL,
    ms_sum holdfast_natural NOT NULL,
    -- counts by fixed bounds of latency, in their order
    buckets TEXT NOT NULL,
    first_token_buckets TEXT NOT NULL,
    failing_since BIGINT,
    last_at BIGINT NOT NULL,
    last_error TEXT CHECK (length(last_error) <= 512),
    PRIMARY KEY (hour, route, model, outcome)
);

CREATE INDEX route_hours_of_route ON route_hours (route, hour);

CREATE TABLE route_failures (
    route TEXT NOT NULL CHECK (length(route) > 0),
    slot BIGINT NOT NULL CHECK (slot BETWEEN 0 AND 19),
    failed_at BIGINT NOT NULL,
    model holdfast_model NOT NULL,
    class TEXT NOT NULL CHECK (length(class) > 0),
    error TEXT NOT NULL CHECK (length(error) <= 512),
    PRIMARY KEY (route, slot)
);

CREATE TABLE route_states (
    node TEXT NOT NULL REFERENCES nodes (name) ON DELETE CASCADE,
    -- the process that wrote it: a successor of that name knows nothing of it
    incarnation holdfast_id NOT NULL,
    route TEXT NOT NULL CHECK (length(route) > 0),
    state TEXT NOT NULL CHECK (state IN ('healthy', 'open')),
    since BIGINT NOT NULL,
    retry_at BIGINT,
    successes_since holdfast_natural NOT NULL,
    PRIMARY KEY (node, route)
);
