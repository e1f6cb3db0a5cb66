"""The official SDK, synchronous."""

import json

import report
from openai import OpenAI
from pydantic import BaseModel

client = OpenAI(base_url=report.URL, api_key=report.API_KEY, http_client=report.http, **report.settings)


class Person(BaseModel):
    name: str


def whole(text):
    return client.chat.completions.create(**report.request(text), **report.option()).choices[0].message.content


def stream(text):
    chunks = client.chat.completions.create(**report.request(text, stream=True), **report.option())
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def tools(text):
    request = report.request(text, tools=[report.function(report.shape("zip"))])
    message = client.chat.completions.create(**request, **report.option()).choices[0].message
    zips = [json.loads(call.function.arguments)["zip"] for call in message.tool_calls]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "Ada"} for call in message.tool_calls]
    request["messages"] += [message, *results]
    return [*zips, client.chat.completions.create(**request, **report.option()).choices[0].message.content]


def structured(text):
    answer = client.chat.completions.parse(**report.request(text), response_format=Person, **report.option())
    return answer.choices[0].message.parsed.name


report.run(whole=whole, stream=stream, tools=tools, structured=structured)
