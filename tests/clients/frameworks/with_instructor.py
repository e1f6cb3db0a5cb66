"""instructor."""

import instructor
import report
from openai import OpenAI
from pydantic import BaseModel

client = instructor.from_openai(OpenAI(base_url=report.URL, api_key=report.API_KEY, http_client=report.http))


class Person(BaseModel):
    """Somebody."""

    name: str


def create(text, response_model, **more):
    return client.chat.completions.create(response_model=response_model, **report.request(text, **more), **report.option())


def whole(text):
    return create(text, None).choices[0].message.content


def stream(text):
    chunks = create(text, None, stream=True)
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def structured(text):
    return create(text, Person).name


def structured_stream(text):
    *_, last = create(text, instructor.Partial[Person], stream=True)
    return last.name


report.run(whole=whole, stream=stream, structured=structured, structured_stream=structured_stream)
