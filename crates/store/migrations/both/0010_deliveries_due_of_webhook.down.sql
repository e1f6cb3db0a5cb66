DROP INDEX deliveries_due_of_webhook;
