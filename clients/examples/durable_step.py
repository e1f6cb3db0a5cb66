"""A job of two steps that may die at any moment and begin again: each step runs once and is paid once."""

import os

import holdfast
import httpx2 as httpx
from openai import OpenAI

transport = holdfast.keyed(httpx.HTTPTransport(), namespace="orders")
client = OpenAI(
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    http_client=httpx.Client(transport=transport, timeout=600),
)


def ask(text):
    answer = client.chat.completions.create(
        model="holdfast/sim-1",
        messages=[{"role": "user", "content": text}],
    )
    return answer.choices[0].message.content


def work(order):
    with holdfast.operation(f"order-{order}/letter") as operation:
        with operation.step("summary"):
            summary = ask(f"Summarize order {order}")
        with operation.step("letter"):
            return ask(f"Write a letter about: {summary}")


print(work(os.environ.get("ORDER", "42")))
