"""Loops above the SDK that give up on each call long before the model answers, and call anew."""

import httpx
import report
import tenacity
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from openai import APITimeoutError, OpenAI

TIMEOUT = 0.5
TRIES = 20
common = {"api_key": report.API_KEY, "timeout": TIMEOUT, "http_client": report.http}
client = OpenAI(base_url=report.URL, max_retries=0, **common)
chain = ChatOpenAI(model=report.MODEL, base_url=report.URL, max_retries=0, **common)
llama = OpenAILike(model=report.MODEL, api_base=report.URL, is_chat_model=True, max_retries=TRIES, **common)


@tenacity.retry(stop=tenacity.stop_after_attempt(TRIES), retry=tenacity.retry_if_exception_type(APITimeoutError))
def with_tenacity(text):
    return client.chat.completions.create(**report.request(text)).choices[0].message.content


def with_retry(text):
    patient = chain.with_retry(
        retry_if_exception_type=(APITimeoutError, httpx.TimeoutException),
        wait_exponential_jitter=False,
        stop_after_attempt=TRIES,
    )
    return patient.invoke(text).content


def with_llama_index(text):
    return llama.chat([ChatMessage(text)]).message.content


report.run(with_tenacity=with_tenacity, with_retry=with_retry, with_llama_index=with_llama_index)
