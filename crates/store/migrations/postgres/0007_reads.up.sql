-- The head of the trail that was printed before, `number:mac`: a verification wants the trail to go through it.

ALTER TABLE jobs ADD COLUMN since TEXT CHECK (length(since) > 0);
