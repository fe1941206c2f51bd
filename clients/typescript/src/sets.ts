/** Sets, sorted sets with typed scores, positions and delay queues. */

import { type Reply, type Word, asArray, asBoolean, asBytes, asFloat, asInteger, asPairs } from "./adapter.js";
import { type Call, Procedure, Ready } from "./calls.js";
import { type Codec, floatText } from "./codecs.js";
import { CodecError, UsageError, ValueRefusedError, excerpt } from "./errors.js";
import { positive } from "./expiry.js";
import { type Identity, Key, type KeyOptions, KeyType, type Space } from "./keys.js";
import { CLAIM_DUE, SETTLE_DUE } from "./scripts.js";
import type { Template } from "./template.js";
import { Duration, Moment } from "./times.js";

/** An unordered set of distinct members. */
export class SetKey<T> extends Key {
  readonly redisType = "set";

  constructor(
    identity: Identity,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  /** Add members in one command. Return how many are new. */
  add(...members: readonly T[]): Call<number> {
    return members.length === 0 ? new Ready(0) : this.writing("SADD", this.all(members), asInteger);
  }

  /** Remove members in one command. Return how many existed. */
  remove(...members: readonly T[]): Call<number> {
    return members.length === 0 ? new Ready(0) : this.writing("SREM", this.all(members), asInteger);
  }

  /** Make these the only members, in one transaction. */
  replace(members: Iterable<T>): Call<void> {
    const wanted = [...members];
    if (wanted.length === 0) return this.delete().map(() => undefined);
    return this.writing("SADD", this.all(wanted), () => undefined, { replaces: true });
  }

  /** Return every member. For sets of unknown size use `scan`, which reads pages. */
  members(): Call<T[]> {
    return this.reading("SMEMBERS", [], each(this.codec));
  }

  has(member: T): Call<boolean> {
    return this.reading("SISMEMBER", [this.encoded(member)], asBoolean);
  }

  size(): Call<number> {
    return this.reading("SCARD", [], asInteger);
  }

  /** Remove and return some member. */
  pop(): Call<T | null> {
    return this.writing("SPOP", [], (reply) => (reply === null ? null : this.codec.decode(asBytes(reply))));
  }

  /** Return one page: the next cursor ("0" at the end) and some members; a member may come twice. */
  scan(cursor = "0", count = 500): Call<[cursor: string, members: T[]]> {
    return this.reading("SSCAN", [cursor, "COUNT", count], (reply) => {
      const [next = null, members = null] = asArray(reply);
      return [asBytes(next).toString(), each(this.codec)(members)];
    });
  }

  /** Return the stored bytes of a member. */
  encoded(member: T): Buffer {
    return this.written(this.codec, member);
  }

  private all(members: readonly T[]): Buffer[] {
    return members.map((member) => this.encoded(member));
  }
}

/** The meaning of a score, which the server keeps as a double. */
export interface Score<T> {
  readonly meaning: string;
  write(value: T): string;
  read(number: number): T;
}

const EXACT = 2 ** 53;

/** A number. */
export const floatScore: Score<number> = {
  meaning: "a number",
  write(value) {
    if (typeof value !== "number" || Number.isNaN(value)) throw new CodecError(this.meaning, excerpt(value));
    return floatText(value);
  },
  read: (number) => number,
};

/** A whole number within ±2**53, beyond which a double loses digits. */
export const intScore: Score<number> = {
  meaning: "a whole number within ±2^53",
  write(value) {
    if (!Number.isInteger(value) || Math.abs(value) > EXACT) throw new CodecError(this.meaning, excerpt(value));
    return value.toFixed(0);
  },
  read(number) {
    if (!Number.isInteger(number)) throw new CodecError(this.meaning, excerpt(number));
    return number;
  },
};

/** A time: milliseconds or seconds since 1970, whole or with a fraction. */
export function timeScore(unit: "ms" | "s" | "fraction"): Score<Date> {
  const size = unit === "ms" ? 1000n : 1_000_000n;
  const meaning = `a time, in ${unit === "ms" ? "ms" : "seconds"} since the epoch`;
  return {
    meaning,
    write(value) {
      const microseconds = Moment.of(value, meaning).epochMicroseconds;
      if (unit === "fraction") return floatText(Number(microseconds) / 1e6);
      const rest = ((microseconds % size) + size) % size;
      return ((microseconds - rest) / size).toString();
    },
    read(number) {
      if (!Number.isFinite(number)) throw new CodecError(meaning, excerpt(number));
      return Moment.fromMicroseconds(unit === "fraction" ? times(number, size) : BigInt(Math.floor(number)) * size, meaning);
    },
  };
}

/** A length of time in seconds or milliseconds. */
export function durationScore(unit: "s" | "ms"): Score<Duration> {
  const size = unit === "s" ? 1_000_000n : 1000n;
  const meaning = `a duration in ${unit === "s" ? "seconds" : "milliseconds"}`;
  return {
    meaning,
    write(value) {
      if (!(value instanceof Duration)) throw new CodecError(meaning, excerpt(value));
      return floatText(Number(value.microseconds) / Number(size));
    },
    read(number) {
      if (!Number.isFinite(number)) throw new CodecError(meaning, excerpt(number));
      return new Duration(times(number, size));
    },
  };
}

/** The score `inf` stands for no value. */
export function orNever<T>(score: Score<T>): Score<T | null> {
  return {
    meaning: `${score.meaning}, or inf for none`,
    write: (value) => (value === null ? "inf" : score.write(value)),
    read: (number) => (number === Infinity ? null : score.read(number)),
  };
}

/** Return a double times a whole number, rounded half to even. */
function times(number: number, by: bigint): bigint {
  let mantissa = number;
  let shift = 0n;
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    shift += 1n;
  }
  const product = BigInt(mantissa) * by;
  const divisor = 1n << shift;
  const rest = ((product % divisor) + divisor) % divisor;
  const floor = (product - rest) / divisor;
  const up = rest * 2n > divisor || (rest * 2n === divisor && floor % 2n !== 0n);
  return up ? floor + 1n : floor;
}

export interface RangeOptions {
  readonly descending?: boolean;
}

export interface ScoreRangeOptions<S> extends RangeOptions {
  /** Both ends are included; without one there is no bound. */
  readonly low?: S;
  readonly high?: S;
  readonly limit?: number;
  readonly offset?: number;
}

const CONDITIONS = { absent: "NX", present: "XX", greater: "GT", less: "LT" } as const;

export interface AddOptions {
  /** Limits an addition to new members, to known ones, or to those whose score it raises or lowers. */
  readonly when?: keyof typeof CONDITIONS;
}

/** Distinct members with a typed score. */
export class SortedSetKey<T, S> extends Key {
  readonly redisType = "zset";

  constructor(
    identity: Identity,
    protected readonly codec: Codec<T>,
    protected readonly scores: Score<S>,
  ) {
    super(identity);
  }

  /** Add or move a member. Return whether anything changed. */
  add(member: T, score: S, options: AddOptions = {}): Call<boolean> {
    return this.addMany([[member, score]], options).map((changed) => changed > 0);
  }

  /** Add or move members in one command. Return how many changed. */
  addMany(entries: Iterable<readonly [member: T, score: S]>, { when }: AddOptions = {}): Call<number> {
    const words = [...entries].flatMap(([member, score]) => [this.writtenScore(score), this.encoded(member)]);
    if (words.length === 0) return new Ready(0);
    return this.writing("ZADD", [...(when === undefined ? [] : [CONDITIONS[when]]), "CH", ...words], asInteger);
  }

  /** Make these the only members, in one transaction. */
  replace(entries: Iterable<readonly [member: T, score: S]>): Call<void> {
    const words = [...entries].flatMap(([member, score]) => [this.writtenScore(score), this.encoded(member)]);
    if (words.length === 0) return this.delete().map(() => undefined);
    return this.writing("ZADD", words, () => undefined, { replaces: true });
  }

  remove(...members: readonly T[]): Call<number> {
    if (members.length === 0) return new Ready(0);
    return this.writing("ZREM", members.map((member) => this.encoded(member)), asInteger);
  }

  /** Remove members scored from low to high, both included. Return how many there were. */
  removeByScore({ low, high }: Pick<ScoreRangeOptions<S>, "low" | "high">): Call<number> {
    return this.writing("ZREMRANGEBYSCORE", this.bounds(low, high), asInteger);
  }

  score(member: T): Call<S | null> {
    return this.reading("ZSCORE", [this.encoded(member)], (reply) => (reply === null ? null : this.scores.read(asFloat(reply))));
  }

  has(member: T): Call<boolean> {
    return this.reading("ZSCORE", [this.encoded(member)], (reply) => reply !== null);
  }

  /** Return the member's rank from 0, or null. */
  rank(member: T, { descending = false }: RangeOptions = {}): Call<number | null> {
    return this.reading(descending ? "ZREVRANK" : "ZRANK", [this.encoded(member)], (reply) => (reply === null ? null : asInteger(reply)));
  }

  size(): Call<number> {
    return this.reading("ZCARD", [], asInteger);
  }

  /** Count members scored from low to high, both included. */
  count({ low, high }: Pick<ScoreRangeOptions<S>, "low" | "high"> = {}): Call<number> {
    return this.reading("ZCOUNT", this.bounds(low, high), asInteger);
  }

  /** Return members and scores by rank, both ends included, negative from the end. */
  range(first = 0, last = -1, { descending = false }: RangeOptions = {}): Call<[member: T, score: S][]> {
    return this.reading("ZRANGE", [first, last, ...(descending ? ["REV"] : []), "WITHSCORES"], (reply) => this.scored(reply));
  }

  /** Return members and scores from low to high, both included. */
  rangeByScore({ low, high, descending = false, limit, offset = 0 }: ScoreRangeOptions<S> = {}): Call<[member: T, score: S][]> {
    const ends = this.bounds(low, high);
    const order: Word[] = descending ? [...ends.reverse(), "BYSCORE", "REV"] : [...ends, "BYSCORE"];
    const page: Word[] = limit !== undefined || offset > 0 ? ["LIMIT", offset, limit ?? -1] : [];
    return this.reading("ZRANGE", [...order, ...page, "WITHSCORES"], (reply) => this.scored(reply));
  }

  popLowest(count = 1): Call<[member: T, score: S][]> {
    return this.writing("ZPOPMIN", [count], (reply) => this.scored(reply));
  }

  popHighest(count = 1): Call<[member: T, score: S][]> {
    return this.writing("ZPOPMAX", [count], (reply) => this.scored(reply));
  }

  /** Return the stored bytes of a member. */
  encoded(member: T): Buffer {
    return this.written(this.codec, member);
  }

  protected writtenScore(score: S): string {
    try {
      return this.scores.write(score);
    } catch (error) {
      if (error instanceof CodecError) throw new ValueRefusedError(this.source, error.expected, error.found);
      throw error;
    }
  }

  private scored(reply: Reply): [T, S][] {
    return asPairs(reply).map(([member, score]) => [this.codec.decode(asBytes(member)), this.scores.read(asFloat(score))]);
  }

  private bounds(low: S | undefined, high: S | undefined): Word[] {
    return [low === undefined ? "-inf" : this.writtenScore(low), high === undefined ? "+inf" : this.writtenScore(high)];
  }
}

/** A claimed member of a queue, and the end of its hold. */
export interface Claimed<T> {
  readonly member: T;
  readonly until: Date;
}

/** Members with the time they are due, by the server's clock; claimed by moving their time forward. */
export class DueQueueKey<T> extends SortedSetKey<T, Date> {
  /** Make a member due at a time. With `keepEarlier` a member that is due earlier stays so. */
  schedule(member: T, at: Date, { keepEarlier = false } = {}): Call<boolean> {
    return this.add(member, at, keepEarlier ? { when: "less" } : {});
  }

  /** Take up to `limit` members that are due, longest due first, and hide them for `holdMs`. */
  claimDue(limit: number, holdMs: number): Call<Claimed<T>[]> {
    if (!Number.isInteger(limit) || limit < 1) throw new UsageError(`limit must be at least 1, got ${limit}.`);
    const operands = ["", positive(holdMs), limit];
    return new Procedure(async (session) => {
      const [until = null, ...members] = asArray(await session.script(CLAIM_DUE, [this.fullName(session.lead(this.space))], operands));
      return members.map((member) => ({ member: this.codec.decode(asBytes(member)), until: this.scores.read(asFloat(until)) }));
    });
  }

  /** Remove a member. Return false, and leave it, if it was claimed or scheduled again meanwhile. */
  finish(claimed: Claimed<T>): Call<boolean> {
    return this.settle(claimed, "");
  }

  /** Make a member due again at a time. Return false, and change nothing, if the claim is over. */
  reschedule(claimed: Claimed<T>, at: Date): Call<boolean> {
    return this.settle(claimed, this.writtenScore(at));
  }

  private settle({ member, until }: Claimed<T>, then: string): Call<boolean> {
    const operands = [this.encoded(member), this.writtenScore(until), then];
    return new Procedure(async (session) => asBoolean(await session.script(SETTLE_DUE, [this.fullName(session.lead(this.space))], operands)));
  }
}

/** A position in degrees. */
export interface Point {
  readonly longitude: number;
  readonly latitude: number;
}

/** A member that a search found, and its distance from the centre in metres. */
export interface Near<T> {
  readonly member: T;
  readonly distance: number;
  readonly point: Point;
}

const HIGHEST_LATITUDE = 85.05112878;

/** Distinct members with a position. Distances are in metres. */
export class GeoKey<T> extends Key {
  readonly redisType = "zset";

  constructor(
    identity: Identity,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  /** Add or move a member. Return whether anything changed. */
  add(member: T, point: Point): Call<boolean> {
    return this.writing("GEOADD", ["CH", ...this.placed(point), this.encoded(member)], asBoolean);
  }

  remove(...members: readonly T[]): Call<number> {
    if (members.length === 0) return new Ready(0);
    return this.writing("ZREM", members.map((member) => this.encoded(member)), asInteger);
  }

  /** Return the position of a member, or null. */
  position(member: T): Call<Point | null> {
    return this.reading("GEOPOS", [this.encoded(member)], (reply) => pointOf(asArray(reply)[0] ?? null));
  }

  /** Return the distance of two members in metres, or null if one does not exist. */
  distance(first: T, second: T): Call<number | null> {
    return this.reading("GEODIST", [this.encoded(first), this.encoded(second), "m"], (reply) => (reply === null ? null : asFloat(reply)));
  }

  /** Return the members within a radius in metres around a position, the nearest first. */
  within(center: Point, radius: number, { limit }: { readonly limit?: number } = {}): Call<Near<T>[]> {
    if (!(radius >= 0 && radius <= 50_000_000)) throw new ValueRefusedError(this.source, "a number of metres from 0 to 50,000,000", String(radius));
    const count = limit === undefined ? [] : ["COUNT", limit];
    const operands = ["FROMLONLAT", ...this.placed(center), "BYRADIUS", radius, "m", "ASC", ...count, "WITHCOORD", "WITHDIST"];
    return this.reading("GEOSEARCH", operands, (reply) =>
      asArray(reply).map((found) => {
        const [member = null, distance = null, point = null] = asArray(found);
        return { member: this.codec.decode(asBytes(member)), distance: asFloat(distance), point: pointOf(point)! };
      }),
    );
  }

  members(): Call<T[]> {
    return this.reading("ZRANGE", [0, -1], each(this.codec));
  }

  size(): Call<number> {
    return this.reading("ZCARD", [], asInteger);
  }

  private encoded(member: T): Buffer {
    return this.written(this.codec, member);
  }

  private placed({ longitude, latitude }: Point): string[] {
    if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= HIGHEST_LATITUDE) return [floatText(longitude), floatText(latitude)];
    throw new ValueRefusedError(this.source, `a longitude within ±180 and a latitude within ±${HIGHEST_LATITUDE}`, `${longitude}, ${latitude}`);
  }
}

function pointOf(reply: Reply): Point | null {
  if (reply === null) return null;
  const [longitude = null, latitude = null] = asArray(reply);
  return { longitude: asFloat(longitude), latitude: asFloat(latitude) };
}

/** Return a decoder of a list of values. */
export function each<T>(codec: Codec<T>): (reply: Reply) => T[] {
  return (reply) => asArray(reply).map((item) => codec.decode(asBytes(item)));
}

export function set<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, SetKey<T>> {
  return new KeyType(space, template, (identity) => new SetKey(identity, codec), options);
}

export function sortedSet<V, T, S>(space: Space, template: Template<V>, codec: Codec<T>, score: Score<S>, options?: KeyOptions): KeyType<V, SortedSetKey<T, S>> {
  return new KeyType(space, template, (identity) => new SortedSetKey(identity, codec, score), options);
}

export function dueQueue<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, DueQueueKey<T>> {
  return new KeyType(space, template, (identity) => new DueQueueKey(identity, codec, timeScore("ms")), options);
}

export function geo<V, T>(space: Space, template: Template<V>, codec: Codec<T>, options?: KeyOptions): KeyType<V, GeoKey<T>> {
  return new KeyType(space, template, (identity) => new GeoKey(identity, codec), options);
}
