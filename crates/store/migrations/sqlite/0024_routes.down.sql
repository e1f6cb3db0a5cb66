DROP TABLE route_states;
DROP TABLE route_failures;
DROP TABLE route_hours;
