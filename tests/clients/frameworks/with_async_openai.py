"""The official SDK, asynchronous."""

import asyncio
import json

import report
from openai import AsyncOpenAI
from pydantic import BaseModel

client = AsyncOpenAI(base_url=report.URL, api_key=report.API_KEY, http_client=report.async_http, **report.settings)
loop = asyncio.new_event_loop()


class Person(BaseModel):
    name: str


async def whole(text):
    return (await client.chat.completions.create(**report.request(text), **report.option())).choices[0].message.content


async def stream(text):
    said = ""
    async for chunk in await client.chat.completions.create(**report.request(text, stream=True), **report.option()):
        said += "".join(choice.delta.content or "" for choice in chunk.choices)
    return said


async def tools(text):
    request = report.request(text, tools=[report.function(report.shape("zip"))])
    message = (await client.chat.completions.create(**request, **report.option())).choices[0].message
    zips = [json.loads(call.function.arguments)["zip"] for call in message.tool_calls]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "Ada"} for call in message.tool_calls]
    request["messages"] += [message, *results]
    return [*zips, (await client.chat.completions.create(**request, **report.option())).choices[0].message.content]


async def structured(text):
    answer = await client.chat.completions.parse(**report.request(text), response_format=Person, **report.option())
    return answer.choices[0].message.parsed.name


def awaited(ask):
    return lambda text: loop.run_until_complete(ask(text))


report.run(whole=awaited(whole), stream=awaited(stream), tools=awaited(tools), structured=awaited(structured))
