DROP TABLE sessions;
DROP TABLE person_passwords;
DROP TABLE person_links;
DROP TABLE person_grants;
DROP TABLE people;
