DROP TABLE refusal_hours;
DROP TABLE refusals;
