"""LiteLLM as a library."""

import json

import litellm
import report
from pydantic import BaseModel

litellm.client_session = report.http
litellm.suppress_debug_info = True


class Person(BaseModel):
    name: str


def complete(request):
    request = {**request, "model": f"openai/{request['model']}"}
    request = {"api_base": report.URL, "api_key": report.API_KEY, **report.settings, **request}
    return litellm.completion(**request, **report.option())


def whole(text):
    return complete(report.request(text)).choices[0].message.content


def retried(text):
    """LiteLLM's own retries, above those of the SDK."""
    return complete(report.request(text, num_retries=3, max_retries=0)).choices[0].message.content


def routed(text):
    deployment = {"model": f"openai/{report.MODEL}", "api_base": report.URL, "api_key": report.API_KEY, "max_retries": 0}
    models = [{"model_name": report.MODEL, "litellm_params": deployment}]
    router = litellm.Router(model_list=models, num_retries=3)
    return router.completion(**report.request(text), **report.option()).choices[0].message.content


def stream(text):
    chunks = complete(report.request(text, stream=True))
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def tools(text):
    request = report.request(text, tools=[report.function(report.shape("zip"))])
    message = complete(request).choices[0].message
    zips = [json.loads(call.function.arguments)["zip"] for call in message.tool_calls]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "Ada"} for call in message.tool_calls]
    request["messages"] += [message, *results]
    return [*zips, complete(request).choices[0].message.content]


def structured(text):
    answer = complete(report.request(text, response_format=Person))
    return Person.model_validate_json(answer.choices[0].message.content).name


report.run(whole=whole, retried=retried, routed=routed, stream=stream, tools=tools, structured=structured)
