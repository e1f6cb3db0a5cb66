"""A stream that is read to its end, however often its connection breaks."""

import json
import os
import uuid

from openai import APIConnectionError, OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])


def stream(text):
    key = str(uuid.uuid4())
    for _ in range(10):
        said, usage = "", None  # another try begins with the first chunk
        try:
            for chunk in client.chat.completions.create(
                model="acme/large-1",
                messages=[{"role": "user", "content": text}],
                stream=True,
                stream_options={"include_usage": True},
                extra_headers={"Idempotency-Key": key},
            ):
                for choice in chunk.choices:
                    said += choice.delta.content or ""
                usage = chunk.usage or usage
            return said, usage.customer_charge_micros
        except APIConnectionError:
            continue
    raise TimeoutError(key)


print(json.dumps(stream("Say hello")))
