/** Options of a keyed fetch. */
export interface KeyedFetchOptions {
  /** Tells this program's operations from others' of its API key. */
  namespace: string;
  /** The fetch that sends; the runtime's own unless it is given. */
  base?: typeof fetch;
}

/** A fetch that gives every chat completion a key, until its answer was read to the end. */
export function keyedFetch(options: KeyedFetchOptions): typeof fetch;

/** Runs `body` as a named operation. Another attempt is another, paid run. */
export function operation<T>(name: string, body: () => T): T;
export function operation<T>(name: string, options: { attempt?: number }, body: () => T): T;

/** Names the one call that `body` makes in the operation around it. */
export function step<T>(name: string, body: () => T): T;

/** The key of one call of a named operation: the same in every process and language. */
export function operationKey(namespace: string, name: string, attempt: number, step: string): string;
