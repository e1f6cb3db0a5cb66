-- Browsers that a person has signed in from, each by the hash of a random token in a cookie. A mark is of no use under
-- another password than the one that it was made under.

CREATE TABLE browser_marks (
    id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    person_id BLOB NOT NULL REFERENCES people (id),
    mark BLOB NOT NULL UNIQUE CHECK (length(mark) = 32),
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    address TEXT NOT NULL
) STRICT;

CREATE INDEX browser_marks_of_person ON browser_marks (person_id, created_at);
