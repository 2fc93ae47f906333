# One database server per service (docs/adr/0003-one-database-per-service.md).

resource "nimbus_postgres" "service" {
  for_each       = var.databases
  name           = "${each.key}-${var.environment}"
  engine_version = "17"
  size           = each.value.size
  storage_gb     = each.value.storage_gb
  replicas       = each.value.replicas
  tags           = merge(local.tags, { service = each.value.owner })

  backup {
    bucket         = nimbus_bucket.backups.name
    schedule       = "15 2 * * *"
    retention_days = 35
  }

  parameters = {
    # A replica may lag this long before it is refused as a candidate in a failover.
    max_candidate_lag_seconds  = 20
    log_min_duration_statement = 500
  }
}
