/** Compare-and-set over any number of keys of one server: checks that must hold, then writes, all or nothing. */

import { type Reply, type Word, asArray, asInteger } from "./adapter.js";
import { Call, type Lowered, Procedure, type Session, piecesOf } from "./calls.js";
import { ConflictError, UsageError, WrongTypeError } from "./errors.js";
import type { Key } from "./keys.js";
import { COMMIT } from "./scripts.js";

/** One condition on one key, tested by the script that writes. */
export interface Check {
  readonly key: Key;
  readonly kind: "any" | "absent" | "exists" | "equals" | "member" | "no-member";
  readonly operands: readonly Buffer[];
}

/** Whether a commit was applied, or the number of the check that failed. */
export type Outcome = { readonly applied: true; readonly replies: readonly Reply[] } | { readonly applied: false; readonly failed: number };

/** How often an operation reads and tries to write before it gives up against other writers. */
export const ATTEMPTS = 24;

// The server's Lua takes at most about 8,000 values in one unpack. Even, so that pairs stay together.
const LARGEST_WRITE = 4000;
const SPLIT = new Set(["SADD", "SREM", "HSET", "HDEL", "RPUSH", "LPUSH", "ZADD", "ZREM", "XDEL", "XACK"]);
const ZADD_OPTIONS = new Set<Word>(["NX", "XX", "GT", "LT", "CH"]);
const ANY_TYPE = new Set(["UNLINK", "PEXPIRE", "PEXPIREAT", "PERSIST", "TOUCH", "EXPIRE_ONCE"]);
// The type a command needs. Met in mid-script, a key of another type would leave half a commit.
const NEEDS: Readonly<Record<string, string>> = {
  ...needing("set", "SADD", "SREM", "SPOP"),
  ...needing("hash", "HSET", "HDEL", "HSETNX", "HINCRBY"),
  ...needing("zset", "ZADD", "ZREM", "ZINCRBY", "ZREMRANGEBYSCORE", "ZREMRANGEBYRANK", "ZPOPMIN", "ZPOPMAX"),
  ...needing("list", "LPUSH", "RPUSH", "LPOP", "RPOP", "LSET", "LREM", "LTRIM", "LINSERT"),
  ...needing("stream", "XADD", "XDEL", "XTRIM", "XACK"),
  ...needing("string", "INCRBY", "APPEND", "GETEX", "GETDEL", "SET"),
};

function needing(type: string, ...verbs: string[]): Record<string, string> {
  return Object.fromEntries(verbs.map((verb) => [verb, type]));
}

/** Always holds; names the key among those of the commit. */
export function owned(key: Key): Check {
  return { key, kind: "any", operands: [] };
}

export function exists(key: Key): Check {
  return { key, kind: "exists", operands: [] };
}

export function absent(key: Key): Check {
  return { key, kind: "absent", operands: [] };
}

/** The string is exactly these bytes, or there is none. */
export function equals(key: Key, value: Buffer | null): Check {
  return value === null ? absent(key) : { key, kind: "equals", operands: [value] };
}

export function hasMember(key: Key, member: Buffer, present = true): Check {
  return { key, kind: present ? "member" : "no-member", operands: [member] };
}

/** Apply the writes if every check holds, all or nothing, as one script. Refused on a cluster. */
export function commit(label: string, checks: readonly Check[], writes: readonly Call<unknown>[]): Call<Outcome> {
  return new Procedure(async (session) => {
    await session.requireOneNode(label);
    const work = new Work(session, checks, writes);
    const [applied, ...rest] = asArray(await session.script(COMMIT, work.names, work.operands()));
    if (asInteger(applied ?? 0n) === 1) return { applied: true, replies: rest };
    const failed = asInteger(rest[0] ?? 0n) - 1;
    if (failed >= checks.length) work.throwWrongType(failed - checks.length);
    return { applied: false, failed };
  });
}

/** Read and commit until nobody was faster in between; an attempt that lost returns null. */
export function optimistic<T>(label: string, attempt: (session: Session) => Promise<T | null>): Call<T> {
  return new Procedure(async (session) => {
    await session.requireOneNode(label);
    for (let number = 0; number < ATTEMPTS; number += 1) {
      const done = await attempt(session);
      if (done !== null) return done;
    }
    throw new ConflictError(label, ATTEMPTS);
  });
}

interface Write {
  readonly index: number;
  readonly verb: string;
  readonly operands: readonly Word[];
}

/** A commit with its names bound, as the script gets it: the names of the checks come first. */
class Work {
  readonly names: Buffer[] = [];
  private readonly places = new Map<string, number>();
  private readonly checks: { index: number; kind: string; operands: readonly Word[] }[];
  private readonly writes: Write[];

  constructor(session: Session, checks: readonly Check[], writes: readonly Call<unknown>[]) {
    this.checks = checks.map(({ key, kind, operands }) => ({ index: this.place(key.fullName(session.lead(key.space))), kind, operands }));
    const lowered = piecesOf(writes, "a commit").flatMap((pieces) => pieces.commands.flatMap((command) => command.lower(session)));
    this.writes = lowered.flatMap((command) => this.bound(command));
  }

  operands(): Word[] {
    const fits = [...this.needs()].map(([index, type]) => ({ index, kind: "fits", operands: [type] as Word[] }));
    const flat: Word[] = [this.checks.length + fits.length, this.writes.length];
    for (const { index, kind, operands } of [...this.checks, ...fits]) flat.push(kind, index + 1, operands.length, ...operands);
    for (const { index, verb, operands } of this.writes) flat.push(verb, index + 1, operands.length, ...operands);
    return flat;
  }

  throwWrongType(place: number): never {
    const [index, type] = [...this.needs()][place]!;
    throw new WrongTypeError(this.names[index]!.toString("utf8"), type);
  }

  private place(name: Buffer): number {
    const text = name.toString("latin1");
    const known = this.places.get(text);
    if (known !== undefined) return known;
    this.places.set(text, this.names.length);
    return this.names.push(name) - 1;
  }

  private bound({ verb, name, before, operands, redisType }: Lowered): Write[] {
    if (before.length > 0 || !(ANY_TYPE.has(verb) || NEEDS[verb] === redisType)) {
      throw new UsageError(`${verb} cannot be part of a commit on ${name.toString("utf8")}. Use a command that writes one key of its type.`);
    }
    const index = this.place(name);
    // commit.lua gives an expiry that counts from the first write by this form.
    if (verb === "EXPIRE_ONCE") return [{ index, verb: "PEXPIRE", operands: [...operands, "NX"] }];
    return parts(verb, operands).map((part) => ({ index, verb, operands: part }));
  }

  /** Return the Redis type that each name must have, where it exists, for every write to succeed. */
  private needs(): Map<number, string> {
    const needed = new Map<number, string>();
    const replaced = new Set<number>();
    for (const { index, verb, operands } of this.writes) {
      if ((verb === "UNLINK" || verb === "SET") && !operands.slice(1).includes("GET")) replaced.add(index);
      else if (verb in NEEDS && !replaced.has(index) && !needed.has(index)) needed.set(index, NEEDS[verb]!);
    }
    return needed;
  }
}

function parts(verb: string, operands: readonly Word[]): (readonly Word[])[] {
  if (operands.length <= LARGEST_WRITE) return [operands];
  if (!SPLIT.has(verb)) throw new UsageError(`${verb} with ${operands.length} words is too large for a commit. Split it.`);
  const isHead = (word: Word, place: number): boolean => (verb === "ZADD" ? ZADD_OPTIONS.has(word) : verb === "XACK" && place === 0);
  const length = operands.findIndex((word, place) => !isHead(word, place));
  const [head, rest] = [operands.slice(0, length), operands.slice(length)];
  const found: Word[][] = [];
  for (let start = 0; start < rest.length; start += LARGEST_WRITE) found.push([...head, ...rest.slice(start, start + LARGEST_WRITE)]);
  return found;
}
