"""Calls without keys, whole, streamed and asynchronous, each made until it has an answer or a final error."""

import asyncio
import json
import os

import holdfast
import httpx2 as httpx
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAI

options = {"base_url": os.environ["HOLDFAST_URL"], "api_key": os.environ["HOLDFAST_KEY"], "max_retries": 0}
transport = holdfast.keyed(httpx.HTTPTransport(), namespace="tests")
other_transport = holdfast.keyed(httpx.AsyncHTTPTransport(), namespace="tests")
client = OpenAI(http_client=httpx.Client(transport=transport), **options)
other = AsyncOpenAI(http_client=httpx.AsyncClient(transport=other_transport), **options)
loop = asyncio.new_event_loop()


def whole(body):
    return client.chat.completions.create(**body).choices[0].message.content


def streamed(body):
    chunks = client.chat.completions.create(**body, stream=True)
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


async def asynchronous(body):
    said = ""
    async for chunk in await other.chat.completions.create(**body, stream=True):
        said += "".join(choice.delta.content or "" for choice in chunk.choices)
    return said


def persistent(ask, body):
    while True:
        try:
            return ask(body)
        except (APIConnectionError, httpx.TransportError):
            continue
        except APIStatusError as error:
            if error.response.headers.get("x-should-retry") != "true":
                return {"error": error.code}


hows = [whole, streamed, lambda body: loop.run_until_complete(asynchronous(body))]
said = []
for call in range(int(os.environ["HOLDFAST_ASKS"])):
    messages = [{"role": "user", "content": f"Say hello {call}"}]
    said.append(persistent(hows[call % len(hows)], {"model": "acme/large-1", "messages": messages}))
print(json.dumps(said))
