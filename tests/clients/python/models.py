"""What the key may use."""

import json
import os

from openai import OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
print(json.dumps({
    "ids": [model.id for model in client.models.list()],
    "one": client.models.retrieve("acme/large-1").id,
}))
