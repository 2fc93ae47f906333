#!/usr/bin/env bash
# Move messages from a dead-letter queue back to where they came from, a few at a time.
#
#   scripts/replay-dead-letters.sh planner.shipment-booked 100
#
# Look at a message first (see docs/runbooks/queue-backlog.md): a poison message that is replayed comes straight back.
set -euo pipefail

queue="${1:?which queue?}"
limit="${2:-50}"

kubectl -n parcels exec parcel-bus-0 -- rabbitmqadmin \
  get queue="${queue}.dead" count="$limit" ackmode=ack_requeue_false --format=raw_json |
  jq -c '.[]' |
  while read -r message; do
    payload="$(jq -r .payload <<<"$message")"
    kubectl -n parcels exec parcel-bus-0 -- rabbitmqadmin publish routing_key="$queue" payload="$payload" >/dev/null
  done
echo "replayed up to $limit messages from ${queue}.dead"
