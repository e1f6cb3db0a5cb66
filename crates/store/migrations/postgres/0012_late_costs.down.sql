DROP TABLE late_costs;
