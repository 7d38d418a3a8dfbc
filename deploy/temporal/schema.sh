#!/bin/sh
# Makes, or brings up to date, both databases of Temporal. Safe to run again: what is there is left as it is.
set -eu
bring_up_to_date() {
  sql="temporal-sql-tool --plugin postgres12 --ep temporal-db --port 5432 --user temporal --db $1"
  $sql create
  $sql setup-schema -v 0.0
  $sql update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}
bring_up_to_date temporal temporal
bring_up_to_date temporal_visibility visibility
