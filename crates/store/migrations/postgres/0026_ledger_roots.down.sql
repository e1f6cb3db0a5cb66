DROP TABLE receipt_keys;
DROP TABLE ledger_passed;
DROP TABLE ledger_roots;
