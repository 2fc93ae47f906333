#!/usr/bin/env bash
# Book N shipments against a local booking-api, for development.
set -euo pipefail

count="${1:-40}"
api="${BOOKING_API:-http://localhost:8080}"
streets=("Tallow Street 4" "Nørregade 17" "Ulica Piotrkowska 90" "Kölner Straße 2b")

for i in $(seq 1 "$count"); do
  street="${streets[$((i % ${#streets[@]}))]}"
  curl --fail --silent --show-error "$api/v1/shipments" \
    -H "idempotency-key: seed-$(printf '%012d' "$i")" \
    -H "content-type: application/json" \
    -d "{\"quoteId\": \"q_SEED$i\", \"parcel\": {\"weightGrams\": $((200 + i * 37)), \"lengthMm\": 300, \"widthMm\": 200, \"heightMm\": 100},
         \"from\": {\"line1\": \"Harbour Lane 1\", \"postcode\": \"20095\", \"city\": \"Wrenfold\", \"country\": \"XX\"},
         \"to\": {\"line1\": \"$street\", \"postcode\": \"5$((1000 + i))\", \"city\": \"Wrenfold\", \"country\": \"XX\"}}" >/dev/null
done
echo "booked $count shipments"
