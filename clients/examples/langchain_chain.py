"""LangChain, whose chains retry and loop as they like: each call of the model is paid once."""

import os

import holdfast
import httpx
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(
    model="holdfast/sim-1",
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    http_client=httpx.Client(transport=holdfast.keyed(httpx.HTTPTransport(), namespace="notes"), timeout=600),
)
prompt = ChatPromptTemplate.from_messages([("system", "Answer in a sentence."), ("human", "{question}")])
chain = prompt | llm.with_retry(stop_after_attempt=5)
answers = chain.batch([{"question": "What is a wallet?"}, {"question": "What is a hold?"}])
print(*(answer.content for answer in answers), sep="\n")
