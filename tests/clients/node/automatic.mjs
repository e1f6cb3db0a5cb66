// A client that makes a new key for every call by itself.

import OpenAI from 'openai';

class GatewayOpenAI extends OpenAI {
  idempotencyHeader = 'Idempotency-Key';
  defaultIdempotencyKey() {
    return crypto.randomUUID();
  }
}

const client = new GatewayOpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
});
const ask = () =>
  client.chat.completions.create({
    model: 'acme/large-1',
    messages: [{ role: 'user', content: 'Say hello' }],
  });

const answers = [await ask(), await ask()];
console.log(JSON.stringify({
  contents: answers.map((answer) => answer.choices[0].message.content),
  distinct: answers[0].id !== answers[1].id,
}));
