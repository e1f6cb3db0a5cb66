"""A loop above the SDK that gives up on each call long before the model answers, whole, streamed and asynchronous;
then one whose calls are refused for good."""

import asyncio
import json
import os

import holdfast
import httpx2 as httpx
from openai import APIStatusError, APITimeoutError, AsyncOpenAI, OpenAI

options = {"base_url": os.environ["HOLDFAST_URL"], "api_key": os.environ["HOLDFAST_KEY"], "max_retries": 0}
transport = holdfast.keyed(httpx.HTTPTransport(), namespace="tests")
other_transport = holdfast.keyed(httpx.AsyncHTTPTransport(), namespace="tests")
client = OpenAI(http_client=httpx.Client(transport=transport), timeout=0.5, **options)
other = AsyncOpenAI(http_client=httpx.AsyncClient(transport=other_transport), timeout=0.5, **options)


def body(text):
    return {"model": "acme/large-1", "messages": [{"role": "user", "content": text}]}


def whole():
    return client.chat.completions.create(**body("whole")).choices[0].message.content


def streamed():
    chunks = client.chat.completions.create(**body("streamed"), stream=True)
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


async def asynchronous():
    said = await other.chat.completions.create(**body("asynchronous"))
    return said.choices[0].message.content


def persistent(ask):
    for tries in range(1, 100):
        try:
            return [ask(), tries > 1]
        except (APITimeoutError, httpx.TimeoutException):
            continue
    raise TimeoutError


def refused():
    try:
        client.chat.completions.create(**body("refuse this"), timeout=30)
    except APIStatusError as error:
        return [error.status_code, error.response.headers["idempotent-replayed"]]


async def at_once():
    """Equal calls at the same moment are calls of their own."""
    calls = [other.chat.completions.create(**body("twins"), timeout=30) for _ in range(2)]
    return len({said.id for said in await asyncio.gather(*calls)})


loop = asyncio.new_event_loop()
said = [persistent(ask) for ask in [whole, streamed, lambda: loop.run_until_complete(asynchronous())]]
refusals = [refused() for _ in range(3)]
print(json.dumps({"said": said, "refused": refusals, "twins": loop.run_until_complete(at_once())}))
