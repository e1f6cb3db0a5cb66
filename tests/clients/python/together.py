"""Three clients at once under one key: the patient ones get the same bytes, one gives up meanwhile."""

import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor

from openai import APITimeoutError, OpenAI

key = str(uuid.uuid4())


def ask(timeout):
    client = OpenAI(
        base_url=os.environ["HOLDFAST_URL"],
        api_key=os.environ["HOLDFAST_KEY"],
        max_retries=0,
        timeout=timeout,
    )
    try:
        return client.chat.completions.with_raw_response.create(
            model="acme/large-1",
            messages=[{"role": "user", "content": "Say hello"}],
            extra_headers={"Idempotency-Key": key},
        )
    except APITimeoutError as error:
        return type(error).__name__


with ThreadPoolExecutor(max_workers=3) as pool:
    first, second, gave_up = pool.map(ask, [30.0, 30.0, 2.0])
print(json.dumps({
    "gave_up": gave_up,
    "content": first.parse().choices[0].message.content,
    "same": first.content == second.content,
}))
