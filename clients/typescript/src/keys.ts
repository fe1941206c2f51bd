/** Declared keys: a KeyType is a template with what is stored, and a Key is one name of it. */

import { asBoolean, asInteger, asText } from "./adapter.js";
import { type Call, Command, type CommandOptions } from "./calls.js";
import type { Codec } from "./codecs.js";
import { CodecError, UsageError, ValueRefusedError } from "./errors.js";
import { type Expiry, positive } from "./expiry.js";
import type { Arguments, Template, Values } from "./template.js";
import { Moment } from "./times.js";

/** A keyspace: its name, and what every name of its keys begins with. */
export interface Space {
  readonly name: string;
  /** A database may be given another. */
  readonly prefix: string;
  readonly version: string;
}

export interface KeyOptions {
  readonly expiry?: Expiry;
  /** Values have members that are not shown, so errors quote nothing of them. */
  readonly hides?: boolean;
  /** The keys that own the names which this template could make as well. */
  readonly yieldsTo?: () => readonly KeyType<any, any>[]; // eslint-disable-line -- keys of any variables
}

/** What a kind of key is made of. */
export interface Identity {
  readonly space: Space;
  readonly source: string;
  readonly name: Buffer;
  readonly expiry: Expiry | undefined;
  readonly hides: boolean;
  readonly values: Readonly<Record<string, unknown>>;
}

/** One key. Its operations are calls: pass them to `Database.run`. */
export abstract class Key {
  /** The type as the server names it. */
  abstract readonly redisType: string;
  readonly space: Space;
  /** The template, for messages. */
  readonly source: string;
  /** The name without the lead of the keyspace. */
  readonly name: Buffer;
  readonly expiry: Expiry | undefined;
  /** Whether errors quote nothing of its values. */
  readonly hides: boolean;
  /** The values of the variables. */
  readonly values: Readonly<Record<string, unknown>>;

  constructor(identity: Identity) {
    this.space = identity.space;
    this.source = identity.source;
    this.name = identity.name;
    this.expiry = identity.expiry;
    this.hides = identity.hides;
    this.values = identity.values;
  }

  fullName(lead: Buffer): Buffer {
    return lead.length === 0 ? this.name : Buffer.concat([lead, this.name]);
  }

  exists(): Call<boolean> {
    return new Command(this, "EXISTS", [], asBoolean);
  }

  /** Delete the key without blocking the server. Return whether it existed. */
  delete(): Call<boolean> {
    return new Command(this, "UNLINK", [], asBoolean);
  }

  /** Return the time to live in milliseconds, or null if the key has no expiry or does not exist. */
  ttl(): Call<number | null> {
    return new Command(this, "PTTL", [], (reply) => (asInteger(reply) < 0 ? null : asInteger(reply)));
  }

  /** Expire after so many milliseconds. Return whether the key exists. */
  expire(milliseconds: number): Call<boolean> {
    return new Command(this, "PEXPIRE", [positive(milliseconds)], asBoolean);
  }

  expireAt(moment: Date): Call<boolean> {
    return new Command(this, "PEXPIREAT", [Moment.of(moment).getTime()], asBoolean);
  }

  /** Remove the expiry. Return whether there was one. */
  persist(): Call<boolean> {
    return new Command(this, "PERSIST", [], asBoolean);
  }

  /** Return the type that the server holds under this name, or "none". */
  storedType(): Call<string> {
    return new Command(this, "TYPE", [], asText);
  }

  /** Return the stored bytes of a value. Throw ValueRefusedError if it is not as declared. */
  protected written<T>(codec: Codec<T>, value: T, role = ""): Buffer {
    try {
      return codec.encode(value);
    } catch (error) {
      if (error instanceof CodecError) throw new ValueRefusedError(this.source, error.expected + role, this.hides ? "<secret>" : error.found);
      throw error;
    }
  }

  /** A read that renews an expiry which counts since the last use. */
  protected reading<T>(verb: string, operands: readonly (string | number | bigint | Uint8Array)[], decode: Command<T>["decode"], options: CommandOptions = {}): Command<T> {
    return new Command(this, verb, operands, decode, { effect: "slide", ...options });
  }

  /** A write that gives the key its declared expiry. */
  protected writing<T>(verb: string, operands: readonly (string | number | bigint | Uint8Array)[], decode: Command<T>["decode"], options: CommandOptions = {}): Command<T> {
    return new Command(this, verb, operands, decode, { effect: "refresh", ...options });
  }
}

/** The keys of one template. */
export class KeyType<V, K extends Key> {
  constructor(
    readonly space: Space,
    readonly template: Template<V>,
    private readonly make: (identity: Identity) => K,
    private readonly options: KeyOptions = {},
  ) {}

  /** Return the key of these values. Throw VariableError if one is outside its alphabet. */
  key(...values: Arguments<V>): K {
    const [given = {}] = values as readonly unknown[];
    const name = this.template.render(given as Values<V>);
    const owner = this.ownerOf(name);
    if (owner !== null) {
      throw new UsageError(`${name.toString("utf8")} is a name of ${owner.template.source}, which has precedence over ${this.template.source}.`);
    }
    const { expiry, hides = false } = this.options;
    return this.make({ space: this.space, source: this.template.source, name, expiry, hides, values: given as Record<string, unknown> });
  }

  /** Return the key with this value of its only variable, or the one key of a template without variables. */
  only(value: unknown): K {
    const [variable] = this.template.variables;
    return this.key(...((variable === undefined ? [] : [{ [variable]: value }]) as unknown as Arguments<V>));
  }

  /** Return the values of a name, given without the lead of the keyspace; null if it is not one of these keys. */
  parse(name: Uint8Array | string): Values<V> | null {
    const bytes = typeof name === "string" ? Buffer.from(name) : name;
    return this.ownerOf(bytes) === null ? this.template.parse(bytes) : null;
  }

  private ownerOf(name: Uint8Array): KeyType<unknown, Key> | null {
    const superiors = (this.options.yieldsTo?.() ?? []) as readonly KeyType<unknown, Key>[];
    return superiors.find((each) => each.template.parse(name) !== null) ?? null;
  }
}

/** A key whose names are known and whose values this package does not read or write. */
export class NamesOnly extends Key {
  constructor(
    identity: Identity,
    override readonly redisType: string,
    /** Why there are no reads and writes. */
    readonly reason: string,
  ) {
    super(identity);
  }
}

/** Declare keys whose values this package does not read or write. */
export function namesOnly<V>(space: Space, template: Template<V>, redisType: string, reason: string, options?: KeyOptions): KeyType<V, NamesOnly> {
  return new KeyType(space, template, (identity) => new NamesOnly(identity, redisType, reason), options);
}

/** Declare a keyspace. */
export function keyspace(name: string, { prefix = "", version = "" }: { readonly prefix?: string; readonly version?: string } = {}): Space {
  return { name, prefix, version };
}

/** Return the beginning of every name of a keyspace: prefix and version, each with a colon. */
export function leadOf({ prefix, version }: Space): string {
  return [prefix, version].map((part) => (part === "" ? "" : `${part}:`)).join("");
}
