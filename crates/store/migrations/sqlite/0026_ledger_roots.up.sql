-- Roots of the ledger: each is signed over the operations and postings since the one before it. The numbers in a root
-- end before `operations_to` and `postings_to`. An operation that had no final ending when its number was passed is in
-- `ledger_passed`, with the number of the root that has it once it has ended. No other row is written for an ending:
-- the order of operations is that of their numbers.

CREATE TABLE ledger_roots (
    seq INTEGER PRIMARY KEY CHECK (seq > 0),
    -- Moment before which its operations and postings were created.
    ends_at INTEGER NOT NULL UNIQUE,
    operations_to INTEGER NOT NULL CHECK (operations_to >= 0),
    postings_to INTEGER NOT NULL CHECK (postings_to >= 0),
    -- The signed document.
    signed TEXT NOT NULL
) STRICT;

CREATE TRIGGER ledger_roots_never_change BEFORE UPDATE ON ledger_roots
BEGIN SELECT RAISE(ABORT, 'roots of the ledger are append-only'); END;
CREATE TRIGGER ledger_roots_stay BEFORE DELETE ON ledger_roots
BEGIN SELECT RAISE(ABORT, 'roots of the ledger are append-only'); END;

CREATE TABLE ledger_passed (
    op_seq INTEGER PRIMARY KEY,
    root INTEGER CHECK (root > 0)
) STRICT;

CREATE INDEX ledger_passed_by_root ON ledger_passed (root, op_seq);
CREATE TRIGGER ledger_passed_once BEFORE UPDATE ON ledger_passed
WHEN OLD.root IS NOT NULL OR NEW.op_seq <> OLD.op_seq
BEGIN SELECT RAISE(ABORT, 'an operation is in one root'); END;
CREATE TRIGGER ledger_passed_stay BEFORE DELETE ON ledger_passed
BEGIN SELECT RAISE(ABORT, 'an operation is in one root'); END;

-- Public keys that have signed: they verify after their server secret is gone.
CREATE TABLE receipt_keys (
    seq INTEGER PRIMARY KEY,
    public_key BLOB NOT NULL UNIQUE CHECK (length(public_key) = 32),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER receipt_keys_never_change BEFORE UPDATE ON receipt_keys
BEGIN SELECT RAISE(ABORT, 'keys of receipts stay'); END;
CREATE TRIGGER receipt_keys_stay BEFORE DELETE ON receipt_keys
BEGIN SELECT RAISE(ABORT, 'keys of receipts stay'); END;
