// A first try whose connection breaks, and a second one under the same key that travels as it likes.

import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  maxRetries: 0,
});
const key = crypto.randomUUID();

async function ask(how) {
  const streamed = { stream: true, stream_options: { include_usage: true } };
  const { data, response } = await client.chat.completions
    .create(
      {
        model: 'acme/large-1',
        messages: [{ role: 'user', content: 'Say hello' }],
        ...(how === 'stream' ? streamed : {}),
      },
      { headers: { 'Idempotency-Key': key } },
    )
    .withResponse();
  const replayed = response.headers.get('idempotent-replayed');
  if (how === 'json') {
    return [data.choices[0].message.content, data.usage.customer_charge_micros, replayed];
  }
  let [said, usage] = ['', null];
  for await (const chunk of data) {
    for (const choice of chunk.choices) said += choice.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  return [said, usage.customer_charge_micros, replayed];
}

const [first, second] = process.env.HOLDFAST_ASKS.split(' ');
const broke = await ask(first).catch((error) => {
  const isTold = error instanceof OpenAI.APIError;
  return !isTold || error instanceof OpenAI.APIConnectionError;
});
console.log(JSON.stringify({ broke, told: await ask(second) }));
