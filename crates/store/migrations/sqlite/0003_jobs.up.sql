-- Work of operators that takes longer than a request. Whoever has claimed a job keeps each page of it here, so that
-- another process goes on from there once the lease has ended.
--
-- step_place and report are in the words of the work: a text, and JSON.

CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    kind TEXT NOT NULL CHECK (length(kind) > 0),
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
    step_done INTEGER NOT NULL DEFAULT 0 CHECK (step_done >= 0),
    step_of INTEGER NOT NULL DEFAULT 0 CHECK (step_of >= 0),
    step_place TEXT,
    -- Head of the trail that was printed before, `number:mac`: a verification wants the trail to go through it.
    since TEXT CHECK (length(since) > 0),
    report TEXT,
    owner TEXT CHECK (length(owner) BETWEEN 1 AND 64),
    incarnation BLOB CHECK (length(incarnation) = 16),
    lease_ends_at INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    CONSTRAINT job_lease CHECK ((owner IS NOT NULL) = (state = 'running')
        AND (incarnation IS NULL) = (owner IS NULL) AND (lease_ends_at IS NULL) = (owner IS NULL)),
    CONSTRAINT job_state CHECK ((started_at IS NULL) = (state = 'queued')
        AND (finished_at IS NOT NULL) = (state IN ('done', 'failed')))
) STRICT;

CREATE INDEX jobs_to_do ON jobs (seq) WHERE finished_at IS NULL;
