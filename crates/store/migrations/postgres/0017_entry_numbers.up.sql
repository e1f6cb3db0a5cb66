-- Numbers of entries (transfers and postings) in the order in which they moved their wallet: moments do not have that
-- order after a clock was set. Null for entries that were written before, which come first. A default, so that a program
-- of the schema before numbers its entries, too: each is written while its wallet is locked, so of two entries of a
-- wallet the later one has the greater number. Between them are numbers of other wallets. Without checks: they would
-- read the whole tables under their locks.

CREATE SEQUENCE entries_seq AS BIGINT;
ALTER TABLE transfers ADD COLUMN number BIGINT;
ALTER TABLE transfers ALTER COLUMN number SET DEFAULT nextval('entries_seq');
ALTER TABLE postings ADD COLUMN number BIGINT;
ALTER TABLE postings ALTER COLUMN number SET DEFAULT nextval('entries_seq');

-- Roles that number operations or insert entries write entries: programs that run meanwhile go on before anybody
-- grants them more.
DO $$
DECLARE
    grantee TEXT;
BEGIN
    FOR grantee IN
        SELECT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
        FROM pg_class AS c, aclexplode(c.relacl) AS acl
        WHERE (c.oid = 'operations_seq'::regclass AND acl.privilege_type IN ('USAGE', 'UPDATE'))
            OR (c.oid IN ('transfers'::regclass, 'postings'::regclass) AND acl.privilege_type = 'INSERT')
    LOOP
        EXECUTE 'GRANT USAGE, SELECT ON SEQUENCE entries_seq TO ' || grantee;
    END LOOP;
END
$$;
