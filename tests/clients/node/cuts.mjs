// Calls without keys, whole and streamed, each made until it has an answer or a final error.

import { keyedFetch } from 'holdfast-client';
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  fetch: keyedFetch({ namespace: 'tests' }),
  maxRetries: 0,
});

async function whole(body) {
  return (await client.chat.completions.create(body)).choices[0].message.content;
}

async function streamed(body) {
  let said = '';
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
    for (const choice of chunk.choices) said += choice.delta.content ?? '';
  }
  return said;
}

async function persistent(ask, body) {
  for (;;) {
    try {
      return await ask(body);
    } catch (error) {
      const isTold = error instanceof OpenAI.APIError && !(error instanceof OpenAI.APIConnectionError);
      if (isTold && error.headers?.get('x-should-retry') !== 'true') return { error: error.code };
    }
  }
}

const said = [];
for (let call = 0; call < Number(process.env.HOLDFAST_ASKS); call++) {
  const messages = [{ role: 'user', content: `Say hello ${call}` }];
  said.push(await persistent(call % 2 ? streamed : whole, { model: 'acme/large-1', messages }));
}
console.log(JSON.stringify(said));
