/** Lists, streams and JSON documents. */

import { type Reply, type Word, asArray, asBytes, asInteger, asPairs, asText } from "./adapter.js";
import { type Call, Procedure, Ready } from "./calls.js";
import type { Codec } from "./codecs.js";
import { ReplyError, UsageError, ValueRefusedError, excerpt } from "./errors.js";
import { positive } from "./expiry.js";
import { type Fields, flat, membersIn } from "./hashes.js";
import { type Identity, Key, type KeyOptions, KeyType, type Space } from "./keys.js";
import { each } from "./sets.js";
import { orNull } from "./strings.js";
import type { Template } from "./template.js";

export type End = "left" | "right";

/** An ordered list; an item may occur in it several times. */
export class ListKey<T> extends Key {
  readonly redisType = "list";

  constructor(
    identity: Identity,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  /** Add items at one end in one command. Return the new length. */
  push(items: readonly T[], end: End = "right"): Call<number> {
    if (items.length === 0) return this.length();
    return this.writing(end === "right" ? "RPUSH" : "LPUSH", this.words(items), asInteger);
  }

  /** Remove and return the item at one end. */
  pop(end: End = "left"): Call<T | null> {
    return this.writing(end === "left" ? "LPOP" : "RPOP", [], orNull(this.codec));
  }

  /** Pop an item, and wait for one up to `timeoutMs`, on a connection of its own. */
  wait(timeoutMs: number, end: End = "left"): Call<T | null> {
    const decode = (reply: Reply): T | null => (reply === null ? null : this.codec.decode(asBytes(asArray(reply)[1] ?? null)));
    return this.writing(end === "left" ? "BLPOP" : "BRPOP", [Math.max(positive(timeoutMs), 2) / 1000], decode, { waits: true, effect: "none" });
  }

  /** Return items by index, both ends included, negative from the end. */
  range(first = 0, last = -1): Call<T[]> {
    return this.reading("LRANGE", [first, last], each(this.codec));
  }

  length(): Call<number> {
    return this.reading("LLEN", [], asInteger);
  }

  at(place: number): Call<T | null> {
    return this.reading("LINDEX", [place], orNull(this.codec));
  }

  /** Remove items equal to `item`: all, or the first `count`, or the last where it is negative. */
  remove(item: T, count = 0): Call<number> {
    return this.writing("LREM", [count, this.written(this.codec, item)], asInteger);
  }

  /** Keep only the items from first to last, both included. */
  trim(first: number, last: number): Call<void> {
    return this.writing("LTRIM", [first, last], () => undefined);
  }

  /** Make these the only items, in one transaction. */
  replace(items: readonly T[]): Call<void> {
    if (items.length === 0) return this.delete().map(() => undefined);
    return this.writing("RPUSH", this.words(items), () => undefined, { replaces: true });
  }

  private words(items: readonly T[]): Buffer[] {
    return items.map((item) => this.written(this.codec, item));
  }
}

/** One entry of a stream: its id (`<ms>-<number>`) and its value. */
export interface Entry<T> {
  readonly id: string;
  readonly value: T;
}

/** An entry that was delivered and not acknowledged. */
export interface Pending {
  readonly id: string;
  readonly consumer: string;
  readonly idleMs: number;
  readonly deliveries: number;
}

/** One page of reclaimed entries; go on from `cursor` until it is `0-0`. */
export interface Reclaimed<T> {
  readonly cursor: string;
  readonly entries: Entry<T>[];
}

export interface ReadOptions {
  readonly count?: number;
  /** Wait up to so many milliseconds if there are none, on a connection of its own. */
  readonly waitMs?: number;
}

/** A log of entries whose fields are the members of T. */
export class StreamKey<T> extends Key {
  readonly redisType = "stream";

  constructor(
    identity: Identity,
    private readonly fields: Fields<T>,
    private readonly groups: readonly string[],
  ) {
    super(identity);
  }

  /** Append an entry and return its id. Trim roughly to `maxLength` entries. */
  add(entry: T, { id = "*", maxLength }: { readonly id?: string; readonly maxLength?: number } = {}): Call<string> {
    const members = flat(this.fields.write(entry, this.source));
    if (members.length === 0) throw new ValueRefusedError(this.source, "at least one member", "an entry whose members are all absent");
    return this.writing("XADD", [...(maxLength === undefined ? [] : ["MAXLEN", "~", maxLength]), id, ...members], asText);
  }

  /** Return entries from start to end, both included; `(` before an id excludes it. */
  range(start = "-", end = "+", { count }: { readonly count?: number } = {}): Call<Entry<T>[]> {
    return this.reading("XRANGE", [start, end, ...counted(count)], (reply) => this.entries(reply));
  }

  /** Return the last entries, newest first. */
  newest(count: number): Call<Entry<T>[]> {
    return this.reading("XREVRANGE", ["+", "-", "COUNT", count], (reply) => this.entries(reply));
  }

  length(): Call<number> {
    return this.reading("XLEN", [], asInteger);
  }

  remove(...ids: readonly string[]): Call<number> {
    return ids.length === 0 ? new Ready(0) : this.writing("XDEL", ids, asInteger);
  }

  /** Delete the oldest entries down to `maxLength`, roughly unless `exact`. Return how many were deleted. */
  trim(maxLength: number, { exact = false } = {}): Call<number> {
    return this.writing("XTRIM", ["MAXLEN", exact ? "=" : "~", maxLength], asInteger);
  }

  /** Return entries after an id (`$` for new ones only). */
  read(after = "0-0", { count, waitMs }: ReadOptions = {}): Call<Entry<T>[]> {
    const before = [...counted(count), ...waiting(waitMs), "STREAMS"];
    return this.reading("XREAD", [after], (reply) => this.first(reply), { before, waits: waitMs !== undefined, effect: "none" });
  }

  /** Create a consumer group, and the stream if need be. Return false if the group exists. */
  createGroup(group: string, start = "0"): Call<boolean> {
    this.checkGroup(group);
    const create = this.writing("XGROUP CREATE", [group, start, "MKSTREAM"], () => true, { effect: "none" });
    return new Procedure(async (session) => {
      try {
        return await create.run(session);
      } catch (error) {
        if (error instanceof ReplyError && error.message.startsWith("BUSYGROUP")) return false;
        throw error;
      }
    });
  }

  /** Return new entries for one consumer of a group, or its unacknowledged ones after `againFrom`. */
  consume(group: string, consumer: string, { count, waitMs, againFrom }: ReadOptions & { readonly againFrom?: string } = {}): Call<Entry<T>[]> {
    this.checkGroup(group);
    const before = ["GROUP", group, consumer, ...counted(count), ...waiting(waitMs), "STREAMS"];
    return this.reading("XREADGROUP", [againFrom ?? ">"], (reply) => this.first(reply), { before, waits: waitMs !== undefined, effect: "none" });
  }

  acknowledge(group: string, ...ids: readonly string[]): Call<number> {
    this.checkGroup(group);
    return ids.length === 0 ? new Ready(0) : this.writing("XACK", [group, ...ids], asInteger, { effect: "none" });
  }

  /** Take over entries that others left unacknowledged for `idleMs`. Return one page of them. */
  reclaim(group: string, consumer: string, idleMs: number, { cursor = "0-0", count = 100 } = {}): Call<Reclaimed<T>> {
    this.checkGroup(group);
    const operands = [group, consumer, Math.max(0, Math.floor(idleMs)), cursor, "COUNT", count];
    return this.writing(
      "XAUTOCLAIM",
      operands,
      (reply) => {
        const [next = null, entries = null] = asArray(reply);
        return { cursor: asText(next), entries: this.entries(asArray(entries).filter((entry) => entry !== null)) };
      },
      { effect: "none" },
    );
  }

  /** Return entries that were delivered to some consumer and not acknowledged. */
  pending(group: string, { count = 100, idleMs = 0 } = {}): Call<Pending[]> {
    this.checkGroup(group);
    return this.reading(
      "XPENDING",
      [group, "IDLE", idleMs, "-", "+", count],
      (reply) =>
        asArray(reply).map((row) => {
          const [id = null, consumer = null, idle = null, deliveries = null] = asArray(row);
          return { id: asText(id), consumer: asText(consumer), idleMs: asInteger(idle), deliveries: asInteger(deliveries) };
        }),
      { effect: "none" },
    );
  }

  private entries(reply: Reply): Entry<T>[] {
    return asArray(reply).flatMap((entry) => {
      const [id = null, members = null] = asArray(entry);
      // A deleted entry that is still pending comes back as [id, nil].
      return members === null ? [] : [{ id: asText(id), value: this.fields.read(membersIn(members)) }];
    });
  }

  /** Return the entries of the only stream of a reply, which is an array of pairs, or a map with RESP 3. */
  private first(reply: Reply): Entry<T>[] {
    if (reply === null) return [];
    const [[, entries = null] = []] = asPairs(reply);
    return this.entries(entries);
  }

  private checkGroup(group: string): void {
    if (this.groups.length > 0 && !this.groups.includes(group)) {
      throw new ValueRefusedError(this.source, `one of the declared consumer groups ${this.groups.join(", ")}`, excerpt(group));
    }
  }
}

function counted(count: number | undefined): Word[] {
  return count === undefined ? [] : ["COUNT", count];
}

function waiting(waitMs: number | undefined): Word[] {
  return waitMs === undefined ? [] : ["BLOCK", positive(waitMs)];
}

/** A JSON document of type T. It needs a server with the JSON type. */
export class JsonDocumentKey<T> extends Key {
  readonly redisType = "ReJSON-RL";

  constructor(
    identity: Identity,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  get(): Call<T | null> {
    return this.reading("JSON.GET", [], orNull(this.codec));
  }

  set(value: T): Call<void> {
    return this.writing("JSON.SET", ["$", this.written(this.codec, value)], () => undefined);
  }

  /** Write the document if there is none. Return whether it was written. */
  create(value: T): Call<boolean> {
    return this.writing("JSON.SET", ["$", this.written(this.codec, value), "NX"], (reply) => reply !== null);
  }

  /** Remove the values at a path. Return how many there were. */
  remove(path: string): Call<number> {
    if (!path.startsWith("$")) throw new UsageError(`a path begins with $, got ${excerpt(path)}.`);
    return this.writing("JSON.DEL", [path], asInteger);
  }
}

export function list<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, ListKey<T>> {
  return new KeyType(space, template, (identity) => new ListKey(identity, codec), options);
}

export function stream<V, T>(space: Space, template: Template<V>, fields: Fields<T>, groups: readonly string[] = [], options?: KeyOptions): KeyType<V, StreamKey<T>> {
  return new KeyType(space, template, (identity) => new StreamKey(identity, fields.of(identity.values), groups), options);
}

export function jsonDocument<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, JsonDocumentKey<T>> {
  return new KeyType(space, template, (identity) => new JsonDocumentKey(identity, codec), options);
}
