// The AI SDK's own provider of OpenAI: the API that it asks by default, and the one that is served.

import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';

import { MODEL, apiKey, baseURL, fetch, run } from './report.mjs';

const openai = createOpenAI({ baseURL, apiKey, fetch });

async function byDefault(prompt) {
  try {
    return (await generateText({ model: openai(MODEL), prompt })).text;
  } catch (error) {
    return [error.statusCode, new URL(error.url).pathname];
  }
}

await run({ byDefault, chat: async (prompt) => (await generateText({ model: openai.chat(MODEL), prompt })).text });
