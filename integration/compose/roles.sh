# The database's first start: a role that owns the tables, one that reads and writes their rows, and a schema, as the README has it.
password() {
    cat "/secrets/postgres/$1-password"
}

psql --set ON_ERROR_STOP=1 --username=postgres --no-password --set owner="$(password owner)" --set app="$(password app)" <<'SQL'
CREATE ROLE leasehold_owner LOGIN PASSWORD :'owner';
CREATE ROLE leasehold_app LOGIN PASSWORD :'app';
CREATE DATABASE ledgers;
\connect ledgers
CREATE SCHEMA leasehold AUTHORIZATION leasehold_owner;
GRANT USAGE ON SCHEMA leasehold TO leasehold_app;
-- Of whatever `leasehold migrate` makes.
ALTER DEFAULT PRIVILEGES FOR ROLE leasehold_owner IN SCHEMA leasehold
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO leasehold_app;
SQL
