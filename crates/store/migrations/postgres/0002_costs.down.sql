ALTER TABLE operations DROP COLUMN provider_cost;
ALTER TABLE prices DROP COLUMN tiers;
