"""curl, which repeats a call's header by itself."""

import json
import subprocess

import report


def curl(request, *arguments):
    headers = [f"Authorization: Bearer {report.API_KEY}", "Content-Type: application/json"]
    headers += [f"{name}: {value}" for name, value in report.option().get("extra_headers", {}).items()]
    command = ["curl", "--silent", "--show-error", "--fail-with-body", *arguments]
    command += ["--retry", str(report.settings.get("max_retries", 5))]
    command += [part for header in headers for part in ("--header", header)]
    command += ["--data", json.dumps(request), f"{report.URL}/chat/completions"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def message(request):
    # To a file: what a try that broke has printed stays printed.
    curl(request, "--retry-all-errors", "--output", "answer.json")
    with open("answer.json", encoding="utf-8") as answer:
        return json.load(answer)["choices"][0]["message"]


def stream(text):
    curl(report.request(text, stream=True), "--retry-all-errors", "--no-buffer", "--output", "answer.txt")
    with open("answer.txt", encoding="utf-8") as answer:
        events = [line.removeprefix("data: ") for line in answer if line.startswith("data: {")]
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def tools(text):
    request = report.request(text, tools=[report.function(report.shape("zip"))])
    asked = message(request)
    zips = [json.loads(call["function"]["arguments"])["zip"] for call in asked["tool_calls"]]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "Ada"} for call in asked["tool_calls"]]
    request["messages"] += [asked, *results]
    return [*zips, message(request)["content"]]


def structured(text):
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": report.shape("name"), "strict": True}}
    return json.loads(message(report.request(text, response_format=schema))["content"])["name"]


report.run(whole=lambda text: message(report.request(text))["content"], stream=stream, tools=tools, structured=structured)
