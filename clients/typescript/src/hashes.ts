/** Hashes: records with fixed members, and maps from ids to values. */

import { type Reply, type Word, asArray, asBigInt, asBoolean, asBytes, asBytesOrNull, asInteger, asPairs } from "./adapter.js";
import { type Call, Command, Ready } from "./calls.js";
import { type Codec, int64 } from "./codecs.js";
import { absent, commit, exists } from "./commit.js";
import { CodecError, ValueRefusedError, excerpt } from "./errors.js";
import type { WriteExpiry } from "./expiry.js";
import { type Identity, Key, type KeyOptions, KeyType, type Space } from "./keys.js";
import { each } from "./sets.js";
import { orNull, whole } from "./strings.js";
import type { Template } from "./template.js";

/** One member: its stored name, its attribute, its codec, and whether it may be absent. */
export interface Member {
  readonly stored: string;
  readonly attribute: string;
  readonly codec: Codec<any>; // eslint-disable-line -- each member has a type of its own
  readonly required: boolean;
  /** The stored form of the value that an absent member has; without one it is null. */
  readonly default?: string;
}

/** The member that holds all fields which a shape does not name. */
export interface Others {
  readonly attribute: string;
  readonly field: Codec<any>; // eslint-disable-line -- as declared
  readonly value: Codec<any>; // eslint-disable-line -- as declared
}

type Stored = ReadonlyMap<string, Buffer>;
type Attributes = Readonly<Record<string, unknown>>;

/** How the values of a record or entry are written as members, and read. */
export interface Fields<T> {
  write(value: T, source: string): Map<string, Buffer>;
  read(stored: Stored): T;
  /** Return the member of an attribute. */
  member(attribute: string, source: string): Member;
  /** Return the fields for the name of a key. */
  of(values: Attributes): Fields<T>;
}

/** One class with members. */
export class ShapeFields<T> implements Fields<T> {
  private readonly names: ReadonlySet<string>;

  constructor(
    private readonly members: readonly Member[],
    private readonly others: Others | null = null,
  ) {
    this.names = new Set(members.map((each) => each.stored));
  }

  of(): Fields<T> {
    return this;
  }

  has(attribute: string): boolean {
    return this.members.some((each) => each.attribute === attribute);
  }

  member(attribute: string, source: string): Member {
    const found = this.members.find((each) => each.attribute === attribute);
    if (found !== undefined) return found;
    throw new ValueRefusedError(source, `members ${this.members.map((each) => each.attribute).join(", ")}`, excerpt(attribute));
  }

  write(value: T, source: string): Map<string, Buffer> {
    const given = value as unknown as Attributes;
    const stored = new Map<string, Buffer>();
    for (const member of this.members) {
      const written = encodedMember(member, given[member.attribute], source);
      if (written !== null) stored.set(bytesKey(Buffer.from(member.stored)), written);
    }
    if (this.others !== null) this.writeOthers(this.others, (given[this.others.attribute] ?? {}) as Attributes, stored, source);
    return stored;
  }

  read(stored: Stored): T {
    const found: Record<string, unknown> = {};
    for (const member of this.members) {
      const data = stored.get(bytesKey(Buffer.from(member.stored)));
      if (data !== undefined) found[member.attribute] = decodedMember(member.codec, data, member.stored);
      else if (member.required) throw new CodecError(`the member '${member.stored}'`, `only ${[...stored.keys()].slice(0, 12).map(excerpt).join(", ") || "no members"}`);
      else if (member.default !== undefined) found[member.attribute] = member.codec.decode(Buffer.from(member.default));
      else found[member.attribute] = member.codec.absentWhenFalse ? false : null;
    }
    if (this.others !== null) {
      const { attribute, field, value } = this.others;
      const rest = [...stored].filter(([name]) => !this.names.has(Buffer.from(name, "latin1").toString()));
      found[attribute] = Object.fromEntries(rest.map(([name, data]) => [field.decode(Buffer.from(name, "latin1")), decodedMember(value, data, name)]));
    }
    return found as T;
  }

  private writeOthers({ attribute, field, value }: Others, given: Attributes, stored: Map<string, Buffer>, source: string): void {
    for (const [name, each] of Object.entries(given)) {
      if (this.names.has(name)) throw new ValueRefusedError(source, `names in '${attribute}' that are not members`, excerpt(name));
      stored.set(bytesKey(refusing(source, attribute, () => field.encode(name))), refusing(source, attribute, () => value.encode(each)));
    }
  }
}

/** Several shapes, told apart by the values of one member. */
export class UnionFields<T> implements Fields<T> {
  constructor(
    private readonly tag: { readonly stored: string; readonly attribute: string },
    private readonly arms: readonly { readonly values: readonly string[]; readonly fields: ShapeFields<T> }[],
  ) {}

  of(): Fields<T> {
    return this;
  }

  member(attribute: string, source: string): Member {
    const arm = this.arms.find(({ fields }) => fields.has(attribute)) ?? this.arms[0]!;
    return arm.fields.member(attribute, source);
  }

  write(value: T, source: string): Map<string, Buffer> {
    const tag = String((value as unknown as Attributes)[this.tag.attribute]);
    const arm = this.arms.find(({ values }) => values.includes(tag));
    if (arm === undefined) throw new ValueRefusedError(source, `one of ${this.known()} as '${this.tag.attribute}'`, excerpt(tag));
    return arm.fields.write(value, source);
  }

  read(stored: Stored): T {
    const tag = stored.get(bytesKey(Buffer.from(this.tag.stored)))?.toString();
    const arm = this.arms.find(({ values }) => tag !== undefined && values.includes(tag));
    if (arm === undefined) throw new CodecError(`one of ${this.known()} as member '${this.tag.stored}'`, excerpt(tag));
    return arm.fields.read(stored);
  }

  private known(): string {
    return this.arms.flatMap(({ values }) => values).sort().join(", ");
  }
}

/** Several shapes, told apart by the beginning of a variable of the key. */
export class PrefixFields<T> implements Fields<T> {
  constructor(
    private readonly variable: string,
    private readonly arms: readonly { readonly prefix: string; readonly fields: ShapeFields<T> }[],
  ) {}

  of(values: Attributes): Fields<T> {
    const text = String(values[this.variable]);
    return (this.arms.find(({ prefix }) => text.startsWith(prefix)) ?? this.arms[0]!).fields;
  }

  member(attribute: string, source: string): Member {
    return this.arms[0]!.fields.member(attribute, source);
  }

  write(value: T, source: string): Map<string, Buffer> {
    return this.arms[0]!.fields.write(value, source);
  }

  read(stored: Stored): T {
    return this.arms[0]!.fields.read(stored);
  }
}

function bytesKey(name: Buffer): string {
  return name.toString("latin1");
}

function refusing<R>(source: string, attribute: string, work: () => R): R {
  try {
    return work();
  } catch (error) {
    if (error instanceof CodecError) throw new ValueRefusedError(source, `${error.expected} as '${attribute}'`, error.found);
    throw error;
  }
}

/** Return the stored form of a member, or null if it must be absent. */
function encodedMember(member: Member, value: unknown, source: string): Buffer | null {
  const absentValue = value === null || value === undefined || (value === false && member.codec.absentWhenFalse === true);
  if (!member.required && absentValue) return null;
  return refusing(source, member.attribute, () => member.codec.encode(value) as Buffer);
}

function decodedMember(codec: Codec<unknown>, data: Buffer, name: string): unknown {
  try {
    return codec.decode(data);
  } catch (error) {
    if (error instanceof CodecError) throw new CodecError(`${error.expected} as member '${name}'`, error.found);
    throw error;
  }
}

/** Return the words of members: name, value, … */
export function flat(stored: ReadonlyMap<string, Buffer>): Buffer[] {
  return [...stored].flatMap(([name, data]) => [Buffer.from(name, "latin1"), data]);
}

/** Return members by the latin-1 form of their names, from a reply. */
export function membersIn(reply: Reply): Map<string, Buffer> {
  return new Map(asPairs(reply).map(([name, data]) => [bytesKey(asBytes(name)), asBytes(data)]));
}

/** A hash whose fields are the members of T. An optional member is left out of the hash when it is null. */
export class RecordKey<T> extends Key {
  readonly redisType = "hash";
  private readonly fields: Fields<T>;

  constructor(identity: Identity, fields: Fields<T>) {
    super(identity);
    this.fields = fields.of(identity.values);
  }

  /** Return the record, or null. */
  get(): Call<T | null> {
    return this.reading("HGETALL", [], (reply) => (asArray(reply).length === 0 ? null : this.fields.read(membersIn(reply))));
  }

  /** Make the record exactly this, in one transaction, so that no reader sees half of it. */
  put(value: T, { expiry }: { readonly expiry?: WriteExpiry } = {}): Call<void> {
    const effect = expiry === undefined ? "refresh" : { write: expiry };
    return this.writing("HSET", this.words(value), () => undefined, { replaces: true, effect });
  }

  /** Write the members of a value in one command; others in the hash stay. Return how many are new. */
  write(value: T, { expiry }: { readonly expiry?: WriteExpiry } = {}): Call<number> {
    return this.writing("HSET", this.words(value), asInteger, { effect: expiry === undefined ? "refresh" : { write: expiry } });
  }

  /** Write the record if there is none. Return whether it was written. */
  create(value: T): Call<boolean> {
    return commit(`create ${this.source}`, [absent(this)], [this.write(value)]).map((outcome) => outcome.applied);
  }

  /** Change members of a record that exists; null removes an optional one. Return whether it exists. */
  update(members: Partial<T>): Call<boolean> {
    return commit(`update ${this.source}`, [exists(this)], this.changes(members)).map((outcome) => outcome.applied);
  }

  /** Return some members by name, those that are stored, without reading the rest. */
  pick<Name extends keyof T & string>(...names: readonly Name[]): Call<Partial<Pick<T, Name>>> {
    if (names.length === 0) return new Ready({});
    const members = names.map((name) => this.fields.member(name, this.source));
    return this.reading("HMGET", members.map(({ stored }) => stored), (reply) => {
      const found = asArray(reply).map(asBytesOrNull);
      const pairs = members.flatMap((member, place) => {
        const data = found[place] ?? null;
        return data === null ? [] : [[member.attribute, decodedMember(member.codec, data, member.stored)] as const];
      });
      return Object.fromEntries(pairs) as Partial<Pick<T, Name>>;
    });
  }

  /** Add to an integer member and return it. This makes a hash that does not exist: create it first. */
  add(name: keyof T & string, by: bigint | number = 1n): Call<bigint> {
    const { stored } = this.fields.member(name, this.source);
    return this.writing("HINCRBY", [stored, this.written(int64, whole(by, this.source))], asBigInt, { effect: "refresh unless computed" });
  }

  /** Return the writes of `update`, for a commit of your own that checks that the record exists. */
  changes(members: Partial<T>): Call<unknown>[] {
    const written: Word[] = [];
    const dropped: Word[] = [];
    for (const [attribute, value] of Object.entries(members)) {
      const member = this.fields.member(attribute, this.source);
      const data = encodedMember(member, value, this.source);
      if (data === null) dropped.push(member.stored);
      else written.push(member.stored, data);
    }
    const writes: Call<unknown>[] = [];
    if (written.length > 0) writes.push(new Command(this, "HSET", written, asInteger, { effect: "refresh unless computed" }));
    if (dropped.length > 0) writes.push(new Command(this, "HDEL", dropped, asInteger, { effect: "refresh unless computed" }));
    return writes;
  }

  private words(value: T): Word[] {
    const stored = this.fields.write(value, this.source);
    if (stored.size === 0) throw new ValueRefusedError(this.source, "at least one member", "a record whose members are all absent");
    return flat(stored);
  }
}

/** A hash from ids to values. Entries are pairs, as of a JavaScript Map. */
export class MapKey<F, T> extends Key {
  readonly redisType = "hash";

  constructor(
    identity: Identity,
    private readonly field: Codec<F>,
    private readonly codec: Codec<T>,
  ) {
    super(identity);
  }

  get(field: F): Call<T | null> {
    return this.reading("HGET", [this.encodedField(field)], orNull(this.codec));
  }

  /** Return the values of these fields in their order; null for those that do not exist. */
  getMany(fields: readonly F[]): Call<(T | null)[]> {
    if (fields.length === 0) return new Ready([]);
    const decode = orNull(this.codec);
    return this.reading("HMGET", fields.map((field) => this.encodedField(field)), (reply) => asArray(reply).map(decode));
  }

  /** Return every entry. For maps of unknown size use `scan`, which reads pages. */
  all(): Call<[field: F, value: T][]> {
    return this.reading("HGETALL", [], (reply) => this.entries(reply));
  }

  fields(): Call<F[]> {
    return this.reading("HKEYS", [], each(this.field));
  }

  size(): Call<number> {
    return this.reading("HLEN", [], asInteger);
  }

  has(field: F): Call<boolean> {
    return this.reading("HEXISTS", [this.encodedField(field)], asBoolean);
  }

  /** Write one field. Return whether it is new. */
  put(field: F, value: T): Call<boolean> {
    return this.writing("HSET", this.words([[field, value]]), asBoolean);
  }

  /** Write many fields in one command; other fields stay. Return how many are new. */
  putMany(entries: Iterable<readonly [field: F, value: T]>): Call<number> {
    const words = this.words(entries);
    return words.length === 0 ? new Ready(0) : this.writing("HSET", words, asInteger);
  }

  putIfAbsent(field: F, value: T): Call<boolean> {
    return this.writing("HSETNX", this.words([[field, value]]), asBoolean);
  }

  /** Make these the only entries, in one transaction, so that no reader sees the map empty. */
  replace(entries: Iterable<readonly [field: F, value: T]>): Call<void> {
    const words = this.words(entries);
    if (words.length === 0) return this.delete().map(() => undefined);
    return this.writing("HSET", words, () => undefined, { replaces: true });
  }

  /** Remove fields. Return how many existed. */
  remove(...fields: readonly F[]): Call<number> {
    if (fields.length === 0) return new Ready(0);
    return this.writing("HDEL", fields.map((field) => this.encodedField(field)), asInteger);
  }

  /** Add to a field that holds an integer, and return it. */
  add(this: MapKey<F, bigint>, field: F, by: bigint | number = 1n): Call<bigint> {
    return this.writing("HINCRBY", [this.encodedField(field), this.written(int64, whole(by, this.source))], asBigInt);
  }

  /** Return one page: the next cursor ("0" at the end) and some entries; an entry may come twice. */
  scan(cursor = "0", count = 500): Call<[cursor: string, entries: [field: F, value: T][]]> {
    return this.reading("HSCAN", [cursor, "COUNT", count], (reply) => {
      const [next = null, entries = null] = asArray(reply);
      return [asBytes(next).toString(), this.entries(entries)];
    });
  }

  private encodedField(field: F): Buffer {
    return this.written(this.field, field);
  }

  private words(entries: Iterable<readonly [F, T]>): Buffer[] {
    return [...entries].flatMap(([field, value]) => [this.encodedField(field), this.written(this.codec, value)]);
  }

  private entries(reply: Reply): [F, T][] {
    return asPairs(reply).map(([field, value]) => [this.field.decode(asBytes(field)), this.codec.decode(asBytes(value))]);
  }
}

/** Declare a member that is always stored. */
export function required(stored: string, codec: Codec<any>, attribute = stored): Member { // eslint-disable-line -- of any type
  return { stored, attribute, codec, required: true };
}

/** Declare a member that may be absent, with the stored form of its default. */
export function maybe(stored: string, codec: Codec<any>, { attribute = stored, default: fallback }: { readonly attribute?: string; readonly default?: string } = {}): Member { // eslint-disable-line -- of any type
  return { stored, attribute, codec, required: false, ...(fallback === undefined ? {} : { default: fallback }) };
}

export function shape<T>(members: readonly Member[], others: Others | null = null): ShapeFields<T> {
  return new ShapeFields(members, others);
}

export function record<V, T>(space: Space, template: Template<V>, fields: Fields<T>, options?: KeyOptions): KeyType<V, RecordKey<T>> {
  return new KeyType(space, template, (identity) => new RecordKey(identity, fields), options);
}

export function map<V, F, T>(space: Space, template: Template<V>, field: Codec<F>, codec: Codec<T>, options?: KeyOptions): KeyType<V, MapKey<F, T>> {
  return new KeyType(space, template, (identity) => new MapKey(identity, field, codec), options);
}
