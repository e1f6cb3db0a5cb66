"""A client that gives up, and asks again later under the same key: it gets what was paid for."""

import json
import os
import uuid

from openai import APITimeoutError, OpenAI

client = OpenAI(
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    max_retries=0,
)
key = str(uuid.uuid4())


def ask(timeout):
    return client.chat.completions.with_raw_response.create(
        model="acme/large-1",
        messages=[{"role": "user", "content": "Say hello"}],
        extra_headers={"Idempotency-Key": key},
        timeout=timeout,
    )


try:
    ask(4.0)
    gave_up = None
except APITimeoutError as error:
    gave_up = type(error).__name__
answers = [ask(30.0), ask(30.0)]
print(json.dumps({
    "gave_up": gave_up,
    "content": answers[0].parse().choices[0].message.content,
    "replayed": [answer.headers["idempotent-replayed"] for answer in answers],
    "same": answers[0].content == answers[1].content,
}))
