-- Attempts of administration that a role has refused, counted beside the trail, by the hour.

CREATE TABLE refused_attempts (
    hour INTEGER NOT NULL,
    actor TEXT NOT NULL CHECK (length(actor) > 0),
    use_case TEXT NOT NULL CHECK (length(use_case) > 0),
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    PRIMARY KEY (hour, actor, use_case)
) STRICT, WITHOUT ROWID;

-- The refunds of an actor in a day, which are summed before the next one.
CREATE INDEX audit_refunds ON audit (actor, created_at) WHERE use_case = 'posting.refund';
