-- Browsers that a person has signed in from, each by the hash of a random token in a cookie. A mark is of no use under
-- another password than the one that it was made under.

CREATE TABLE browser_marks (
    id holdfast_id PRIMARY KEY,
    person_id holdfast_id NOT NULL REFERENCES people (id),
    mark holdfast_digest NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    address TEXT NOT NULL
);

CREATE INDEX browser_marks_of_person ON browser_marks (person_id, created_at);
