#!/bin/sh
# Temporal's programs take the database password from the environment only; a compose file should not hold it. Reads it
# from its secret and starts the program named.
set -eu
POSTGRES_PWD=$(cat /run/secrets/temporal_db_password)
SQL_PASSWORD=$POSTGRES_PWD
export POSTGRES_PWD SQL_PASSWORD
exec "$@"
