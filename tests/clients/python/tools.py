"""A model that asks for a tool, is told what it returned, and answers: whole, then in pieces."""

import json
import os
import uuid

from openai import OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
people = {"1": "Ada"}
tools = [{
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Who lives there",
        "parameters": {"type": "object", "properties": {"zip": {"type": "string"}}},
    },
}]


def request(messages):
    return {
        "model": "acme/large-1",
        "messages": messages,
        "tools": tools,
        "extra_headers": {"Idempotency-Key": str(uuid.uuid4())},
    }


def whole(messages):
    answer = client.chat.completions.create(**request(messages))
    message = answer.choices[0].message
    calls = [(call.id, call.function.arguments) for call in message.tool_calls or []]
    return message, message.content, calls, answer.usage


def in_pieces(messages):
    said, calls, usage = "", {}, None
    for chunk in client.chat.completions.create(
        **request(messages), stream=True, stream_options={"include_usage": True}
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            said += choice.delta.content or ""
            for piece in choice.delta.tool_calls or []:
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.id or ""
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
    message = {"role": "assistant", "content": said or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls.values()
        ]
    told = [(call["id"], call["arguments"]) for call in calls.values()]
    return message, said, told, usage


def converse(ask):
    messages = [{"role": "user", "content": "Who lives in 1?"}]
    usages = []
    while True:
        message, said, calls, usage = ask(messages)
        usages.append(usage.model_dump())
        if not calls:
            return {"said": said, "usages": usages}
        messages.append(message)
        for identifier, arguments in calls:
            result = people[json.loads(arguments)["zip"]]
            messages.append({"role": "tool", "tool_call_id": identifier, "content": result})


print(json.dumps([converse(whole), converse(in_pieces)]))
