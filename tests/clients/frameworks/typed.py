"""A program that is read by a type checker: what it may write, and what it may not."""

from contextlib import AbstractContextManager

import holdfast
import httpx

transport: httpx.HTTPTransport = holdfast.keyed(httpx.HTTPTransport(), namespace="tests")
other: httpx.AsyncHTTPTransport = holdfast.keyed(httpx.AsyncHTTPTransport(), namespace="tests")
client = httpx.Client(transport=transport)
key: str = holdfast.operation_key("tests", "order-42", 1, "1")

with holdfast.operation("order-42", attempt=2) as operation:
    named: holdfast.Operation = operation
    step: AbstractContextManager[object] = operation.step("translate")
    with step:
        client.close()

holdfast.keyed(httpx.HTTPTransport())  # type: ignore[call-arg]
holdfast.operation("order-42", attempt="2")  # type: ignore[arg-type]
holdfast.operation_key("tests", "order-42", "1", "1")  # type: ignore[arg-type]
operation.step(1)  # type: ignore[arg-type]
operation.missing()  # type: ignore[attr-defined]
