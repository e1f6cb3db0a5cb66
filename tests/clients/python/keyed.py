"""Calls that say nothing of keys, over connections that break: the helper makes a key for each body."""

import json
import os

import holdfast
import httpx2 as httpx
from openai import APIConnectionError, OpenAI

transport = holdfast.keyed(httpx.HTTPTransport(), namespace="tests")
client = OpenAI(
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    http_client=httpx.Client(transport=transport, timeout=600),
)
body = {"model": "acme/large-1", "messages": [{"role": "user", "content": "Say hello"}]}


def whole():
    return client.chat.completions.create(**body).choices[0].message.content


def streamed():
    said = ""
    for chunk in client.chat.completions.create(**body, stream=True):
        said += "".join(choice.delta.content or "" for choice in chunk.choices)
    return said


def persistent(ask):
    """A loop above the SDK: it calls anew, and knows nothing of keys."""
    for _ in range(5):
        try:
            return ask()
        except (APIConnectionError, httpx.TransportError):
            continue
    raise TimeoutError


print(json.dumps({"said": [persistent(ask) for ask in [whole, whole, streamed, streamed]]}))
