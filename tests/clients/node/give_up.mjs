// A client that gives up, and asks again later under the same key: it gets what was paid for.

import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  maxRetries: 0,
});
const key = crypto.randomUUID();

const ask = (timeout) =>
  client.chat.completions
    .create(
      { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] },
      { headers: { 'Idempotency-Key': key }, timeout },
    )
    .asResponse();

const gaveUp = await ask(4_000).then(
  () => null,
  (error) => error instanceof OpenAI.APIConnectionTimeoutError && error.constructor.name,
);
const answers = [await ask(30_000), await ask(30_000)];
const [first, second] = [await answers[0].text(), await answers[1].text()];
console.log(JSON.stringify({
  gave_up: gaveUp,
  content: JSON.parse(first).choices[0].message.content,
  replayed: answers.map((answer) => answer.headers.get('idempotent-replayed')),
  same: first === second,
}));
