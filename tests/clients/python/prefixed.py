"""A client that is told the header's name alone makes keys with a prefix of its own."""

import json
import os

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
client._idempotency_header = "Idempotency-Key"
try:
    client.chat.completions.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": "Say hello"}],
    )
except BadRequestError as error:
    print(json.dumps({"status": error.status_code, "code": error.code, "message": error.message}))
