// The AI SDK, with a tool: each step of the loop is a call with a key of its own, and is paid once.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { keyedFetch } from 'holdfast-client';
import { z } from 'zod';

const gateway = createOpenAICompatible({
  name: 'holdfast',
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  fetch: keyedFetch({ namespace: 'support' }),
});
const stock = tool({
  description: 'How many of an article there are',
  inputSchema: z.object({ article: z.string() }),
  execute: ({ article }) => `7 of ${article}`,
});
const { text } = await generateText({
  model: gateway('holdfast/sim-tools'),
  prompt: 'Is the lamp in stock?',
  tools: { stock },
  stopWhen: stepCountIs(5),
});
console.log(text);
