DROP TABLE results_purged;
ALTER TABLE usage_hours DROP COLUMN costs_excluded;
DROP TABLE excluded_costs;
