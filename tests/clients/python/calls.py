"""A key per call: the SDK's own retries of a call repeat its key."""

import json
import os
import uuid

from openai import OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])


def ask(text):
    return client.chat.completions.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": text}],
        extra_headers={"Idempotency-Key": str(uuid.uuid4())},
    )


answers = [ask("Say hello"), ask("Say hello")]
print(json.dumps({
    "contents": [answer.choices[0].message.content for answer in answers],
    "charges": [answer.usage.customer_charge_micros for answer in answers],
}))
