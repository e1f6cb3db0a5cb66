"""A first try whose connection breaks, and a second one under the same key that travels as it likes."""

import json
import os
import uuid

from openai import APIConnectionError, OpenAI

client = OpenAI(
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    max_retries=0,
)
key = str(uuid.uuid4())


def ask(how):
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    answer = client.chat.completions.with_raw_response.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": "Say hello"}],
        extra_headers={"Idempotency-Key": key},
        **(streamed if how == "stream" else {}),
    )
    replayed, said = answer.headers["idempotent-replayed"], answer.parse()
    if how == "json":
        return [said.choices[0].message.content, said.usage.customer_charge_micros, replayed]
    chunks = list(said)
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    return ["".join(pieces), chunks[-1].usage.customer_charge_micros, replayed]


first, second = os.environ["HOLDFAST_ASKS"].split()
try:
    broke = ask(first)
except APIConnectionError:
    broke = True
print(json.dumps({"broke": broke, "told": ask(second)}))
