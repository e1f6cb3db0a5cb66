"""The same key and the same request: the same answer, from what was paid for before."""

import json
import os
import uuid

from openai import OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
key = str(uuid.uuid4())


def ask():
    return client.chat.completions.with_raw_response.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": "Say hello"}],
        extra_headers={"Idempotency-Key": key},
    )


first, second = ask(), ask()
print(json.dumps({
    "same": first.parse() == second.parse(),
    "replayed": [answer.headers["idempotent-replayed"] for answer in (first, second)],
}))
