"""Clients that know nothing of keys: synchronous and not, whole answers and streams."""

import asyncio
import json
import os

from openai import AsyncOpenAI, OpenAI

options = {
    "base_url": os.environ["HOLDFAST_URL"],
    "api_key": os.environ["HOLDFAST_KEY"],
    "max_retries": 8,
}
ask = {"model": "acme/large-1", "messages": [{"role": "user", "content": "Say hello"}]}
client = OpenAI(**options)


async def others():
    other = AsyncOpenAI(**options)
    answer = await other.chat.completions.create(**ask)
    said = ""
    async for chunk in await other.chat.completions.create(**ask, stream=True):
        said += chunk.choices[0].delta.content or ""
    return [answer.choices[0].message.content, said]


whole = client.chat.completions.create(**ask).choices[0].message.content
streamed = "".join(
    chunk.choices[0].delta.content or ""
    for chunk in client.chat.completions.create(**ask, stream=True)
)
print(json.dumps([whole, streamed, *asyncio.run(others())]))
