"""What the SDK's own helpers give back is appended to the conversation, whole and in pieces."""

import json
import os
import uuid

from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])


class LookUp(BaseModel):
    zip: str


class Person(BaseModel):
    name: str


def request(messages):
    return {
        "model": "acme/large-1",
        "messages": messages,
        "tools": [pydantic_function_tool(LookUp, name="look_up")],
        "response_format": Person,
        "extra_headers": {"Idempotency-Key": str(uuid.uuid4())},
    }


def whole(messages):
    return client.chat.completions.parse(**request(messages))


def in_pieces(messages):
    with client.chat.completions.stream(**request(messages)) as stream:
        return stream.get_final_completion()


def converse(ask):
    messages, zips, names = [{"role": "user", "content": "Who lives in 1?"}], [], []
    for _ in range(3):
        message = ask(messages).choices[0].message
        messages.append(message)
        for call in message.tool_calls or []:
            zips.append(call.function.parsed_arguments.zip)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "Ada"})
        if message.parsed:
            names.append(message.parsed.name)
            messages.append({"role": "user", "content": "Who again?"})
    return {"zips": zips, "names": names}


print(json.dumps([converse(whole), converse(in_pieces)]))
