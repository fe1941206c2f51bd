/** The thin interface between this package and a Redis client. */

import { KeywrightError, ReplyError } from "./errors.js";

/** One word of a command. */
export type Word = string | number | bigint | Uint8Array;

/** A reply with bytes as they are and whole numbers as bigint; maps are flat arrays. */
export type Reply = null | bigint | number | Buffer | Reply[] | ReplyError;

export interface Adapter {
  /** Send commands in one pipeline. The error of a command is in its place. */
  send(commands: readonly (readonly Word[])[]): Promise<Reply[]>;
  /** Send commands as one MULTI … EXEC. The error of a command is in its place. */
  transaction(commands: readonly (readonly Word[])[]): Promise<Reply[]>;
  /** Send one command that may wait, on a connection of its own. */
  wait(command: readonly Word[]): Promise<Reply>;
  /** Close the connections that `wait` opened. The client itself stays open. */
  close(): Promise<void>;
}

/** Return a word as clients take it. */
export function wireWord(word: Word): string | Buffer {
  return word instanceof Uint8Array ? Buffer.from(word.buffer, word.byteOffset, word.byteLength) : String(word);
}

/** Return a reply of a client in the one form that this package reads. */
export function normalised(reply: unknown): Reply {
  if (reply === null || reply === undefined) return null;
  if (Buffer.isBuffer(reply) || typeof reply === "bigint") return reply;
  if (typeof reply === "number") {
    if (!Number.isInteger(reply)) return reply;
    if (Number.isSafeInteger(reply)) return BigInt(reply);
    throw new KeywrightError("the client rounded a whole number beyond 2**53. Create it with stringNumbers: true.");
  }
  if (typeof reply === "string") return /^-?\d+$/u.test(reply) ? BigInt(reply) : Buffer.from(reply);
  if (typeof reply === "boolean") return reply ? 1n : 0n;
  if (Array.isArray(reply)) return reply.map(normalised);
  if (reply instanceof Map) return [...reply].flat().map(normalised);
  if (reply instanceof Set) return [...reply].map(normalised);
  if (reply instanceof ReplyError) return reply;
  if (reply instanceof Error) return new ReplyError(reply.message);
  throw new KeywrightError(`the client returned a ${typeof reply}, which is not a reply.`);
}

/** Return a reply that is whole, or throw its error. */
export function checked(reply: Reply | undefined): Exclude<Reply, ReplyError> {
  if (reply instanceof ReplyError) throw reply;
  return reply ?? null;
}

export function asBytes(reply: Reply): Buffer {
  if (Buffer.isBuffer(reply)) return reply;
  if (typeof reply === "bigint" || typeof reply === "number") return Buffer.from(String(reply));
  throw new KeywrightError("the server did not reply with bytes.");
}

export function asBytesOrNull(reply: Reply): Buffer | null {
  return reply === null ? null : asBytes(reply);
}

export function asText(reply: Reply): string {
  return asBytes(reply).toString("utf8");
}

export function asBigInt(reply: Reply): bigint {
  if (typeof reply === "bigint") return reply;
  return BigInt(asText(reply));
}

export function asInteger(reply: Reply): number {
  return Number(asBigInt(reply));
}

export function asBoolean(reply: Reply): boolean {
  return reply !== null && asBigInt(reply) !== 0n;
}

export function asArray(reply: Reply): Reply[] {
  if (Array.isArray(reply)) return reply;
  if (reply === null) return [];
  throw new KeywrightError("the server did not reply with an array.");
}

/** Return pairs: the servers send them flat, or each as an array of two with RESP 3. */
export function asPairs(reply: Reply): [Reply, Reply][] {
  const flat = asArray(reply).every(Array.isArray) ? asArray(reply).flat() : asArray(reply);
  const pairs: [Reply, Reply][] = [];
  for (let place = 0; place < flat.length; place += 2) pairs.push([flat[place] ?? null, flat[place + 1] ?? null]);
  return pairs;
}

/** Return a float as the servers print it. */
export function asFloat(reply: Reply): number {
  if (typeof reply === "number") return reply;
  const text = asText(reply);
  return /inf/iu.test(text) ? (text.startsWith("-") ? -Infinity : Infinity) : Number(text);
}
