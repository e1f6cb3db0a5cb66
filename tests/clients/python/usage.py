"""The key's own usage and costs, page by page, as OpenAI's administration reads them."""

import json
import os

from openai import OpenAI

key = os.environ["HOLDFAST_KEY"]
client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=key, admin_api_key=key)
client.chat.completions.create(
    model="acme/large-1",
    messages=[{"role": "user", "content": "Say hello"}],
    extra_headers={"Idempotency-Key": "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11"},
)
start = int(os.environ["HOLDFAST_NOW"]) - 2 * 86_400
usage = client.admin.organization.usage
found, page = [], None
while True:
    more = {} if page is None else {"page": page}
    told = usage.completions(
        start_time=start, bucket_width="1d", limit=2, group_by=["model", "api_key_id"], **more
    )
    found += [result for bucket in told.data for result in bucket.results]
    page = told.next_page
    if not told.has_more:
        break
costs = usage.costs(start_time=start, group_by=["line_item"])
print(json.dumps({
    "usage": [[it.model, it.input_tokens, it.output_tokens, it.num_model_requests] for it in found],
    "is_own": all(it.api_key_id == os.environ["HOLDFAST_KEY_ID"] for it in found),
    "costs": [
        [it.line_item, it.amount.value, it.amount.currency]
        for bucket in costs.data
        for it in bucket.results
    ],
}))
