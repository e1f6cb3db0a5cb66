// What the key may use.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });
const models = await client.models.list();
const one = await client.models.retrieve('acme/large-1');
console.log(JSON.stringify({ ids: models.data.map((model) => model.id), one: one.id }));
