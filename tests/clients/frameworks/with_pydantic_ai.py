"""pydantic-ai."""

import asyncio

import report
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

options = {"base_url": report.URL, "api_key": report.API_KEY, "http_client": report.async_http}
if report.settings:
    options = {"openai_client": AsyncOpenAI(**options, **report.settings)}
provider = OpenAIProvider(**options)
model = OpenAIChatModel(report.MODEL, provider=provider)
loop = asyncio.new_event_loop()


class Person(BaseModel):
    name: str


def run(agent, text):
    return loop.run_until_complete(agent.run(text, model_settings=report.option())).output


def whole(text):
    return run(Agent(model), text)


def stream(text):
    async def pieces():
        async with Agent(model).run_stream(text, model_settings=report.option()) as streamed:
            return "".join([piece async for piece in streamed.stream_text(delta=True)])

    return loop.run_until_complete(pieces())


def tools(text):
    agent, zips = Agent(model), []

    @agent.tool_plain
    def look_up(zip: str) -> str:
        zips.append(zip)
        return report.PEOPLE[zip]

    said = run(agent, text)
    return [*zips, said]


def structured(text):
    return run(Agent(model, output_type=Person), text).name


report.run(whole=whole, stream=stream, tools=tools, structured=structured)
