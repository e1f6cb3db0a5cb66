// Three clients at once under one key: the patient ones get the same bytes, one gives up meanwhile.

import OpenAI from 'openai';

const key = crypto.randomUUID();

const ask = async (timeout) => {
  const client = new OpenAI({
    baseURL: process.env.HOLDFAST_URL,
    apiKey: process.env.HOLDFAST_KEY,
    maxRetries: 0,
    timeout,
  });
  try {
    const answer = await client.chat.completions
      .create(
        { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] },
        { headers: { 'Idempotency-Key': key } },
      )
      .asResponse();
    return await answer.text();
  } catch (error) {
    if (!(error instanceof OpenAI.APIConnectionTimeoutError)) throw error;
    return error.constructor.name;
  }
};

const [first, second, gaveUp] = await Promise.all([30_000, 30_000, 2_000].map(ask));
console.log(JSON.stringify({
  gave_up: gaveUp,
  content: JSON.parse(first).choices[0].message.content,
  same: first === second,
}));
