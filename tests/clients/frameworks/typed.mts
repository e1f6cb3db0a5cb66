// A program that is read by a type checker: what it may write, and what it may not.

import { keyedFetch, operation, operationKey, step, type KeyedFetchOptions } from 'holdfast-client';
import OpenAI from 'openai';

const options: KeyedFetchOptions = { namespace: 'tests', base: fetch };
const keyed: typeof fetch = keyedFetch(options);
export const client = new OpenAI({ baseURL: 'http://gateway/v1', apiKey: 'key', fetch: keyed });
export const key: string = operationKey('tests', 'order-42', 1, '1');
export const said: Promise<string> = operation('order-42', { attempt: 2 }, async () => step('translate', () => 'text'));
export const count: number = operation('order-42', () => 1);

// @ts-expect-error A namespace is needed.
keyedFetch({});
// @ts-expect-error An attempt is a number.
operation('order-42', { attempt: '2' }, () => 1);
// @ts-expect-error A step has a body.
step('translate');
// @ts-expect-error What a body gives is what the operation gives.
export const text: string = operation('order-42', () => 1);
