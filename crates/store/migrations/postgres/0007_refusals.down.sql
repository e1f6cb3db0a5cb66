DROP INDEX audit_refunds;
DROP TABLE refused_attempts;
