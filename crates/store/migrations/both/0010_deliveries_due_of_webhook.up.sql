-- What is due of one webhook, so that a backlog of one tenant hides nothing of the others.

CREATE INDEX deliveries_due_of_webhook ON deliveries (webhook_id, next_at) WHERE state = 'pending';
