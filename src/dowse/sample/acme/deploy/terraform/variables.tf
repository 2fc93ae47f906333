variable "region" {
  description = "Where everything runs"
  type        = string
  default     = "north-2"
}

variable "environment" {
  description = "staging or production"
  type        = string
  validation {
    condition     = contains(["staging", "production"], var.environment)
    error_message = "environment must be staging or production."
  }
}

variable "databases" {
  description = "Database servers by name"
  type = map(object({
    owner      = string
    size       = string
    storage_gb = number
    replicas   = number
  }))
  default = {
    bookings = { owner = "booking-api", size = "m4", storage_gb = 200, replicas = 2 }
    tariff   = { owner = "quote-engine", size = "s2", storage_gb = 20, replicas = 1 }
    routes   = { owner = "route-planner", size = "m2", storage_gb = 100, replicas = 1 }
    tracking = { owner = "tracking-hub", size = "l4", storage_gb = 900, replicas = 2 }
  }
}
