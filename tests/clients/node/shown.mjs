// The line that an error shows, where a script would have it.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });
const body = { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] };
const answer = await THE_LINE;
console.log(JSON.stringify({ content: answer.choices[0].message.content }));
