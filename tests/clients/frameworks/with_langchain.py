"""LangChain."""

import asyncio

import report
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

http = {} if report.http is None else {"http_client": report.http, "http_async_client": report.async_http}
llm = ChatOpenAI(model=report.MODEL, base_url=report.URL, api_key=report.API_KEY, **http, **report.settings)
loop = asyncio.new_event_loop()


class Person(BaseModel):
    """Somebody."""

    name: str


@tool
def look_up(zip: str) -> str:
    """Who lives there."""
    return report.PEOPLE[zip]


def whole(text):
    return llm.invoke(text, **report.option()).content


def asynchronous(text):
    return loop.run_until_complete(llm.ainvoke(text, **report.option())).content


def stream(text):
    return "".join(chunk.content for chunk in llm.stream(text, **report.option()))


def tools(text):
    messages, bound = [HumanMessage(text)], llm.bind_tools([look_up])
    message = bound.invoke(messages, **report.option())
    messages += [message, *(look_up.invoke(call) for call in message.tool_calls)]
    return [*(call["args"]["zip"] for call in message.tool_calls), bound.invoke(messages, **report.option()).content]


def structured(text):
    return llm.with_structured_output(Person).invoke(text, **report.option()).name


report.run(whole=whole, asynchronous=asynchronous, stream=stream, tools=tools, structured=structured)
