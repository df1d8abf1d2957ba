#!/bin/sh
# Two databases, each with a role of its own: Dagster's records and the ledger both have a table `jobs`.
set -eu
for name in dagster ledger; do
    case $name in dagster) password=$DAGSTER_PASSWORD ;; ledger) password=$LEDGER_PASSWORD ;; esac
    psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --set name="$name" --set password="$password" <<-'SQL'
	CREATE ROLE :"name" LOGIN PASSWORD :'password';
	CREATE DATABASE :"name" OWNER :"name";
	REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
	SQL
done
