"""LlamaIndex."""

import asyncio

import report
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

llm = OpenAILike(
    model=report.MODEL,
    api_base=report.URL,
    api_key=report.API_KEY,
    is_chat_model=True,
    is_function_calling_model=True,
    http_client=report.http,
    async_http_client=report.async_http,
    **report.settings,
)
loop = asyncio.new_event_loop()


class Person(BaseModel):
    """Somebody."""

    name: str


def look_up(zip: str) -> str:
    """Who lives there."""
    return report.PEOPLE[zip]


def whole(text):
    return llm.chat([ChatMessage(text)], **report.option()).message.content


def asynchronous(text):
    return loop.run_until_complete(llm.achat([ChatMessage(text)], **report.option())).message.content


def stream(text):
    return "".join(part.delta for part in llm.stream_chat([ChatMessage(text)], **report.option()))


def tools(text):
    offered, history = [FunctionTool.from_defaults(look_up)], [ChatMessage(text)]
    answer = llm.chat_with_tools(offered, chat_history=history, **report.option())
    zips = []
    history.append(answer.message)
    for call in llm.get_tool_calls_from_response(answer):
        zips.append(call.tool_kwargs["zip"])
        result = look_up(**call.tool_kwargs)
        history.append(ChatMessage(result, role="tool", additional_kwargs={"tool_call_id": call.tool_id}))
    return [*zips, llm.chat_with_tools(offered, chat_history=history, **report.option()).message.content]


def structured(text):
    return llm.structured_predict(Person, PromptTemplate("{text}"), llm_kwargs=report.option(), text=text).name


report.run(whole=whole, asynchronous=asynchronous, stream=stream, tools=tools, structured=structured)
