"""instructor."""

import instructor
import report
from openai import OpenAI
from pydantic import BaseModel, field_validator

options = {"base_url": report.URL, "api_key": report.API_KEY, "http_client": report.http, **report.settings}
client = instructor.from_openai(OpenAI(**options))
by_schema = instructor.from_openai(OpenAI(**options), mode=instructor.Mode.JSON_SCHEMA)
refused = []


class Person(BaseModel):
    """Somebody."""

    name: str


class Doubted(Person):
    """Somebody, who has to be named twice."""

    @field_validator("name")
    @classmethod
    def doubt(cls, name):
        if not refused:
            refused.append(name)
            raise ValueError("say it again")
        return name


def create(text, response_model, **more):
    return client.chat.completions.create(response_model=response_model, **report.request(text, **more), **report.option())


def whole(text):
    return create(text, None).choices[0].message.content


def stream(text):
    chunks = create(text, None, stream=True)
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def structured(text):
    return create(text, Person).name


def asked_again(text):
    refused.clear()
    asked = {**report.request(text), "response_model": Doubted, "max_retries": 2}
    return by_schema.chat.completions.create(**asked, **report.option()).name


def structured_stream(text):
    *_, last = create(text, instructor.Partial[Person], stream=True)
    return last.name


report.run(
    whole=whole,
    stream=stream,
    structured=structured,
    structured_stream=structured_stream,
    asked_again=asked_again,
)
