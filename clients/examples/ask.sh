#!/bin/sh
# Asks one question, and pays once: `HOLDFAST_URL` and `HOLDFAST_KEY` say where and by whom.
set -eu

question='{"model": "holdfast/sim-1", "messages": [{"role": "user", "content": "hello"}]}'
[ -s answer.key ] || (cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen | tr A-Z a-z) > answer.key
curl --silent --show-error --fail-with-body --retry 5 --retry-all-errors --output answer.json \
  -H "Authorization: Bearer $HOLDFAST_KEY" -H "Idempotency-Key: $(cat answer.key)" \
  -H 'Content-Type: application/json' -d "$question" "$HOLDFAST_URL/chat/completions"
cat answer.json
