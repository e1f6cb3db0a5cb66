"""A client that makes a new key for every call by itself."""

import json
import os
import uuid

from openai import OpenAI


class GatewayOpenAI(OpenAI):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._idempotency_header = "Idempotency-Key"

    def _idempotency_key(self):
        return str(uuid.uuid4())


client = GatewayOpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
answers = [
    client.chat.completions.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": "Say hello"}],
    )
    for _ in range(2)
]
print(json.dumps({
    "contents": [answer.choices[0].message.content for answer in answers],
    "distinct": answers[0].id != answers[1].id,
}))
