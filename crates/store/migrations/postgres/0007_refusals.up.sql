-- Attempts of administration that a role has refused, counted beside the trail, by the hour.

CREATE TABLE refused_attempts (
    hour BIGINT NOT NULL,
    actor holdfast_name NOT NULL,
    use_case holdfast_name NOT NULL,
    attempts BIGINT NOT NULL CHECK (attempts > 0),
    PRIMARY KEY (hour, actor, use_case)
);

-- The refunds of an actor in a day, which are summed before the next one.
CREATE INDEX audit_refunds ON audit (actor, created_at) WHERE use_case = 'posting.refund';
