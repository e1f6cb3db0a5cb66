DROP TABLE person_invitations;
DROP TABLE person_wallet_links;
