-- What longer prompts cost, and what a run cost the operator.

-- A line for each tier: its threshold in prompt tokens, then its rates in the order of the columns.
ALTER TABLE prices ADD COLUMN tiers TEXT NOT NULL DEFAULT '';

-- In the currency of the wallet, where the route has a cost in it. No money of the ledger.
ALTER TABLE operations ADD COLUMN provider_cost holdfast_natural
    CONSTRAINT operation_provider_cost CHECK (provider_cost IS NULL OR charge IS NOT NULL);
