-- A database and a role for workers, who are no superusers, so that the policies of the tables bind them:
--   psql -h db.example -U postgres -f deploy/claims-role.sql
--   PGPASSWORD=… memoird worker --init-claims --claims postgres://worker@db.example/fleet
-- Then set a password: \password worker
CREATE ROLE worker LOGIN;
CREATE DATABASE fleet OWNER worker;
