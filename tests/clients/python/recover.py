"""A short timeout and the SDK's own retries: a slow answer is picked up, not paid for again."""

import json
import os
import uuid

from openai import OpenAI

client = OpenAI(
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    timeout=4.0,
    max_retries=9,
)
answer = client.chat.completions.with_raw_response.create(
    model="acme/large-1",
    messages=[{"role": "user", "content": "Say hello"}],
    extra_headers={"Idempotency-Key": str(uuid.uuid4())},
)
print(json.dumps({
    "content": answer.parse().choices[0].message.content,
    "replayed": answer.headers["idempotent-replayed"],
}))
