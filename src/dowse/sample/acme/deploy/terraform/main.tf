# Databases, names and the backup bucket. Everything inside the cluster is Kubernetes' business.

terraform {
  required_version = ">= 1.9"
  required_providers {
    nimbus = {
      source  = "nimbuscloud/nimbus"
      version = "~> 4.2"
    }
  }
}

provider "nimbus" {
  region = var.region
}

locals {
  tags = {
    company     = "wrenfold"
    environment = var.environment
    managed_by  = "terraform"
  }
}

resource "nimbus_bucket" "backups" {
  name       = "wrenfold-${var.environment}-backups"
  versioning = true
  tags       = local.tags

  lifecycle_rule {
    prefix            = "nightly/"
    expire_after_days = 35
  }
}

resource "nimbus_dns_record" "database" {
  for_each = var.databases
  zone     = "db.wrenfold.example"
  name     = each.key
  type     = "CNAME"
  # Five seconds, so that clients follow a failover quickly.
  ttl   = 5
  value = nimbus_postgres.service[each.key].leader_hostname
}
