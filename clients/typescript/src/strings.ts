/** Kinds of keys that are one string: values, counters, leases, claims, estimates and bits. */

import { type Word, asArray, asBigInt, asBoolean, asBytesOrNull, asInteger } from "./adapter.js";
import { type Call, Procedure, Ready } from "./calls.js";
import { type Codec, int64, text } from "./codecs.js";
import { type Check, commit, equals } from "./commit.js";
import { CodecError, UsageError, ValueRefusedError } from "./errors.js";
import { type WriteExpiry, positive } from "./expiry.js";
import { type Identity, Key, type KeyOptions, KeyType, type Space } from "./keys.js";
import { ACQUIRE, EXTEND, RELEASE, type Script } from "./scripts.js";
import type { Template } from "./template.js";

export interface SetOptions {
  /** Write only where there is no key, or only where there is one. */
  readonly when?: "absent" | "present";
  readonly keepTtl?: boolean;
  /** The expiry of this write instead of the declared one. */
  readonly expiry?: WriteExpiry;
}

/** One value of type T. */
export class ValueKey<T> extends Key {
  readonly redisType = "string";

  constructor(
    identity: Identity,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  /** Return the value, or null. Renew an expiry that counts since the last use. */
  get(): Call<T | null> {
    const decode = orNull(this.codec);
    if (this.expiry?.since === "last use") return this.reading("GETEX", [], decode, { inline: true });
    return this.reading("GET", [], decode);
  }

  /** Write the value with its expiry, in one command. Return whether it was written, which `when` may prevent. */
  set(value: T, { when, keepTtl = false, expiry }: SetOptions = {}): Call<boolean> {
    const condition: Word[] = when === undefined ? [] : [when === "absent" ? "NX" : "XX"];
    const operands = [this.encoded(value), ...condition, ...(keepTtl ? ["KEEPTTL"] : [])];
    const effect = keepTtl ? "none" : expiry === undefined ? "refresh" : { write: expiry };
    return this.writing("SET", operands, (reply) => reply !== null, { inline: true, effect });
  }

  /** Write the value and return the previous one, in one command. */
  swap(value: T, { expiry }: Pick<SetOptions, "expiry"> = {}): Call<T | null> {
    const effect = expiry === undefined ? "refresh" : { write: expiry };
    return this.writing("SET", [this.encoded(value), "GET"], orNull(this.codec), { inline: true, effect });
  }

  /** Return the value and delete the key, in one command: of two takers one gets it. */
  take(): Call<T | null> {
    return this.writing("GETDEL", [], orNull(this.codec), { effect: "none" });
  }

  /** Return the number of stored bytes. */
  length(): Call<number> {
    return this.reading("STRLEN", [], asInteger);
  }

  /** Return the stored bytes of a value. */
  encoded(value: T): Buffer {
    return this.written(this.codec, value);
  }
}

/** A 64-bit number that starts at 0 and that the server adds to. */
export class CounterKey extends Key {
  readonly redisType = "string";

  /** Return the number; 0 if the key does not exist. */
  get(): Call<bigint> {
    return this.reading("GET", [], orZero);
  }

  /** Add to the number and return it. */
  add(by: bigint | number = 1n): Call<bigint> {
    return this.writing("INCRBY", [this.written(int64, whole(by, this.source))], asBigInt);
  }

  set(value: bigint | number): Call<void> {
    return this.writing("SET", [this.written(int64, whole(value, this.source))], () => undefined);
  }

  /** Return the number and delete the key, in one command. */
  take(): Call<bigint> {
    return this.writing("GETDEL", [], orZero, { effect: "none" });
  }
}

/** A distributed lock: a string that holds the token of its holder until the hold runs out. */
export class LeaseKey extends Key {
  readonly redisType = "string";

  /** Acquire the lease if it is free, or renew it for this token. Return whether it is held now. */
  acquire(token: string, holdMs: number): Call<boolean> {
    return held(this, ACQUIRE, [stamp(token), positive(holdMs)]);
  }

  /** Extend the hold to this long from now. Return false if it ran out or was lost: stop then. */
  extend(token: string, holdMs: number): Call<boolean> {
    return held(this, EXTEND, [stamp(token), positive(holdMs)]);
  }

  /** Release the lease. Return false if this token did not have it. */
  release(token: string): Call<boolean> {
    return held(this, RELEASE, [stamp(token)]);
  }

  /** Return the token that has the lease, or null. */
  holder(): Call<string | null> {
    return this.reading("GET", [], orNull(text), { effect: "none" });
  }

  /** Return a check for `commit`: its writes are applied only while this token has the lease. */
  heldBy(token: string): Check {
    return equals(this, stamp(token));
  }
}

/** Work that one of several processes does, once: absent, `claim:<token>` while it is done, or a marker. */
export class ClaimKey extends Key {
  readonly redisType = "string";

  /** Begin, or renew the hold of the same token. Return false if it is done or another has it. */
  begin(token: string, holdMs: number): Call<boolean> {
    return held(this, ACQUIRE, [stamp(token, CLAIMED), positive(holdMs)]);
  }

  /** Extend the hold to this long from now. Return false if it ran out: stop the work then. */
  extend(token: string, holdMs: number): Call<boolean> {
    return held(this, EXTEND, [stamp(token, CLAIMED), positive(holdMs)]);
  }

  /** Release the hold, so that another may begin at once. Return false if this token did not have it. */
  release(token: string): Call<boolean> {
    return held(this, RELEASE, [stamp(token, CLAIMED)]);
  }

  /** Write the done marker, with more writes in the same step. Return whether we held the claim. */
  finish(token: string, marker = "done", also: readonly Call<unknown>[] = []): Call<boolean> {
    return commit(`finish ${this.source}`, [this.heldBy(token)], [this.done(marker), ...also]).map((outcome) => outcome.applied);
  }

  /** Return the write of the done marker, for a commit that checks `heldBy`. */
  done(marker = "done"): Call<void> {
    if (marker.startsWith(CLAIMED)) throw new UsageError(`a marker cannot begin with ${CLAIMED}, which marks a claim that is held.`);
    return this.writing("SET", [Buffer.from(marker)], () => undefined, { inline: true });
  }

  state(): Call<"free" | "held" | "done"> {
    return this.reading(
      "GET",
      [],
      (reply) => {
        const found = asBytesOrNull(reply);
        if (found === null) return "free";
        return found.subarray(0, CLAIMED.length).toString() === CLAIMED ? "held" : "done";
      },
      { effect: "none" },
    );
  }

  /** Return a check for `commit`: its writes are applied only while this token has the claim. */
  heldBy(token: string): Check {
    return equals(this, stamp(token, CLAIMED));
  }
}

const CLAIMED = "claim:";

function stamp(token: string, lead = ""): Buffer {
  if (token === "") throw new UsageError("the token is empty. Pass a unique one, such as crypto.randomUUID().");
  return Buffer.from(lead + token);
}

function held(key: Key, script: Script, operands: readonly Word[]): Call<boolean> {
  return new Procedure(async (session) => asBoolean(await session.script(script, [key.fullName(session.lead(key.space))], operands)));
}

/** How many distinct members were added, as an estimate that is off by 0.81 % on average. */
export class HyperLogLogKey<T> extends Key {
  readonly redisType = "string";

  constructor(
    identity: Identity,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  /** Add members in one command. Return whether the estimate changed. */
  add(...members: readonly T[]): Call<boolean> {
    if (members.length === 0) return new Ready(false);
    return this.writing("PFADD", members.map((member) => this.written(this.codec, member)), asBoolean);
  }

  /** Estimate the distinct members, of several keys together. */
  estimate(...others: readonly HyperLogLogKey<T>[]): Call<number> {
    return this.reading("PFCOUNT", [], asInteger, others.length > 0 ? { others, effect: "none" } : {});
  }

  /** Add the members of others to this one, in one command. */
  merge(...others: readonly HyperLogLogKey<T>[]): Call<void> {
    return this.writing("PFMERGE", [], () => undefined, { others });
  }
}

/** Bits by their offset, which all are 0 at first. */
export class BitmapKey extends Key {
  readonly redisType = "string";

  constructor(
    identity: Identity,
    private readonly bits: number,
  ) {
    super(identity);
  }

  /** Set a bit, or clear it. Return what it was before. */
  set(offset: number, bit = true): Call<boolean> {
    return this.writing("SETBIT", [this.offset(offset), bit ? 1 : 0], asBoolean);
  }

  /** Return a bit; it is 0 beyond the stored bytes. */
  get(offset: number): Call<boolean> {
    return this.reading("GETBIT", [this.offset(offset)], asBoolean);
  }

  /** Count the bits that are set. */
  count(): Call<number> {
    return this.reading("BITCOUNT", [], asInteger);
  }

  /** Return the offset of the first bit that is set, or clear; null if there is none. */
  first(bit = true): Call<number | null> {
    return this.reading("BITPOS", [bit ? 1 : 0], (reply) => (asInteger(reply) < 0 ? null : asInteger(reply)));
  }

  private offset(offset: number): number {
    if (Number.isInteger(offset) && offset >= 0 && offset < this.bits) return offset;
    throw new ValueRefusedError(this.source, `an offset from 0 to ${this.bits - 1}`, String(offset));
  }
}

/** One member of bit fields. */
export interface Bits {
  readonly width: number;
  readonly at: number;
  readonly signed?: boolean;
  /** What an addition beyond the range does. */
  readonly overflow?: "wrap" | "saturate" | "refuse";
}

const OVERFLOW = { wrap: "WRAP", saturate: "SAT", refuse: "FAIL" } as const;

/** Named integers of some bits each; all are 0 at first. */
export class BitFieldsKey<Name extends string> extends Key {
  readonly redisType = "string";

  constructor(
    identity: Identity,
    private readonly members: Readonly<Record<Name, Bits>>,
  ) {
    super(identity);
  }

  /** Return all members; a key that does not exist has zeros. */
  get(): Call<Record<Name, bigint>> {
    const names = Object.keys(this.members) as Name[];
    const operands = names.flatMap((name) => ["GET", this.type(name), this.members[name].at]);
    return this.reading("BITFIELD_RO", operands, named(names));
  }

  /** Write some members, or all, in one command. Return what they were before. */
  put<Given extends Name>(values: Readonly<Record<Given, bigint | number>>): Call<Record<Given, bigint>> {
    const names = Object.keys(values) as Given[];
    if (names.length === 0) return new Ready({} as Record<Given, bigint>);
    const operands = names.flatMap((name) => ["SET", this.type(name), this.members[name].at, this.fitting(name, values[name])]);
    return this.writing("BITFIELD", operands, named(names));
  }

  /** Add to a member and return it; null, with nothing changed, where its overflow refuses. */
  add(name: Name, by: bigint | number = 1n): Call<bigint | null> {
    const { at, overflow = "refuse" } = this.members[name];
    const operands = ["OVERFLOW", OVERFLOW[overflow], "INCRBY", this.type(name), at, this.written(int64, whole(by, this.source))];
    return this.writing("BITFIELD", operands, (reply) => {
      const [found = null] = asArray(reply);
      return found === null ? null : asBigInt(found);
    });
  }

  private type(name: Name): string {
    const bits = this.members[name];
    if (bits === undefined) throw new ValueRefusedError(this.source, `members ${Object.keys(this.members).join(", ")}`, name);
    return `${bits.signed ? "i" : "u"}${bits.width}`;
  }

  private fitting(name: Name, value: bigint | number): bigint {
    const { width, signed = false } = this.members[name];
    const low = signed ? -(2n ** BigInt(width - 1)) : 0n;
    const high = 2n ** BigInt(signed ? width - 1 : width) - 1n;
    const found = whole(value, this.source);
    if (found < low || found > high) throw new ValueRefusedError(this.source, `${name} from ${low} to ${high}`, String(value));
    return found;
  }
}

function named<Name extends string>(names: readonly Name[]): (reply: Parameters<typeof asArray>[0]) => Record<Name, bigint> {
  return (reply) => Object.fromEntries(asArray(reply).map((value, place) => [names[place]!, asBigInt(value)])) as Record<Name, bigint>;
}

/** Return a decoder that returns null for an absent value. */
export function orNull<T>(codec: Codec<T>): (reply: Parameters<typeof asBytesOrNull>[0]) => T | null {
  return (reply) => {
    const found = asBytesOrNull(reply);
    return found === null ? null : codec.decode(found);
  };
}

function orZero(reply: Parameters<typeof asBytesOrNull>[0]): bigint {
  const found = asBytesOrNull(reply);
  return found === null ? 0n : int64.decode(found);
}

/** Return a number as a bigint. Throw ValueRefusedError for a fraction, or beyond what a number holds exactly. */
export function whole(value: bigint | number, source: string): bigint {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return BigInt(value);
  throw new ValueRefusedError(source, "a whole number, as a bigint beyond 2**53", new CodecError("", String(value)).found);
}

export function value<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, ValueKey<T>> {
  return new KeyType(space, template, (identity) => new ValueKey(identity, codec), options);
}

export function counter<V>(space: Space, template: Template<V>, options?: KeyOptions): KeyType<V, CounterKey> {
  return new KeyType(space, template, (identity) => new CounterKey(identity), options);
}

export function lease<V>(space: Space, template: Template<V>, options?: KeyOptions): KeyType<V, LeaseKey> {
  return new KeyType(space, template, (identity) => new LeaseKey(identity), options);
}

export function claim<V>(space: Space, template: Template<V>, options?: KeyOptions): KeyType<V, ClaimKey> {
  return new KeyType(space, template, (identity) => new ClaimKey(identity), options);
}

export function hyperloglog<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, HyperLogLogKey<T>> {
  return new KeyType(space, template, (identity) => new HyperLogLogKey(identity, codec), options);
}

export function bitmap<V>(space: Space, template: Template<V>, bits = 2 ** 32, options?: KeyOptions): KeyType<V, BitmapKey> {
  return new KeyType(space, template, (identity) => new BitmapKey(identity, bits), options);
}

export function bitFields<V, Name extends string>(space: Space, template: Template<V>, members: Readonly<Record<Name, Bits>>, options?: KeyOptions): KeyType<V, BitFieldsKey<Name>> {
  return new KeyType(space, template, (identity) => new BitFieldsKey(identity, members), options);
}
