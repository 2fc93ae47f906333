output "database_leaders" {
  description = "Current leader of every database"
  value       = { for name, server in nimbus_postgres.service : name => server.leader_hostname }
}

output "backup_bucket" {
  value = nimbus_bucket.backups.name
}
