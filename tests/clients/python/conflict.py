"""The same key and another request: an error, and no retry."""

import json
import os
import uuid

from openai import ConflictError, OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
key = str(uuid.uuid4())


def ask(text):
    return client.chat.completions.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": text}],
        extra_headers={"Idempotency-Key": key},
    )


ask("Say hello")
try:
    ask("Say something else")
except ConflictError as error:
    print(json.dumps({"status": error.status_code, "code": error.code}))
