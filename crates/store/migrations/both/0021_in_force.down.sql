DROP INDEX webhooks_in_force;
DROP INDEX admin_keys_in_force;
DROP INDEX api_keys_in_force;
