"""The command line tool `llm`, whose headers are fixed: a key for one call is a file for one call."""

import json
import os
import pathlib
import subprocess
import sys

import report

folder = pathlib.Path("llm").absolute()
folder.mkdir(exist_ok=True)
LOOK_UP = '''
def look_up(zip: str) -> str:
    "Who lives there"
    open("zip.txt", "w").write(zip)
    return {"1": "Ada"}[zip]
'''


def llm(text, *arguments):
    model = {
        "model_id": "acme",
        "model_name": report.MODEL,
        "api_key_name": "acme",
        "api_base": report.URL,
        "supports_tools": True,
        "supports_schema": True,
        "headers": report.option().get("extra_headers", {}),
    }
    # What is JSON is YAML.
    (folder / "extra-openai-models.yaml").write_text(json.dumps([model]))
    command = [sys.executable, "-m", "llm", "--model", "acme", "--key", report.API_KEY, *arguments, text]
    ran = subprocess.run(command, env={**os.environ, "LLM_USER_PATH": str(folder)}, capture_output=True, check=True, text=True)
    return ran.stdout.strip()


def tools(text):
    said = llm(text, "--functions", LOOK_UP, "--no-stream")
    return [pathlib.Path("zip.txt").read_text(), said]


report.run(
    whole=lambda text: llm(text, "--no-stream"),
    stream=llm,
    tools=tools,
    structured=lambda text: json.loads(llm(text, "--schema", "name str", "--no-stream"))["name"],
)
