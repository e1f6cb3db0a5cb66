"""The line that an error shows, where a script would have it."""

import json
import os
import uuid

from openai import OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
body = {"model": "acme/large-1", "messages": [{"role": "user", "content": "Say hello"}]}
answer = THE_LINE
print(json.dumps({"content": answer.choices[0].message.content}))
