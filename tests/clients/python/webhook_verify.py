"""Verifies one delivery by the library of Standard Webhooks, and prints its event."""

import json
import sys

from standardwebhooks import Webhook

delivery = json.load(sys.stdin)
event = Webhook(delivery["secret"]).verify(delivery["body"].encode(), delivery["headers"])
print(json.dumps(event))
