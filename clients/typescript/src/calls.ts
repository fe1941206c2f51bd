/** Operations as values: what to send, and how to read what comes back. A database runs them. */

import { type Reply, type Word, checked } from "./adapter.js";
import { CodecError, StoredDataError, UsageError } from "./errors.js";
import { type Effect, expiryCommand, expiryOption } from "./expiry.js";
import type { Key, Space } from "./keys.js";
import { EXPIRE_ONCE, type Script } from "./scripts.js";

/** One command with its key in its place. */
export interface Lowered {
  readonly verb: string;
  readonly name: Buffer;
  /** Words between the command and its key. */
  readonly before: readonly Word[];
  readonly operands: readonly Word[];
  readonly redisType: string;
}

/** What a call needs of a database. */
export interface Session {
  lead(space: Space): Buffer;
  /** Send groups in one pipeline; a group of several commands is a transaction. */
  exchange(groups: readonly (readonly (readonly Word[])[])[]): Promise<Reply[][]>;
  wait(command: readonly Word[]): Promise<Reply>;
  script(script: Script, names: readonly Buffer[], operands: readonly Word[]): Promise<Reply>;
  /** Throw UnsupportedError on a cluster, where a commit needs the journal. */
  requireOneNode(label: string): Promise<void>;
}

/** The commands of a call that does not read before it writes. */
export interface Pieces<T> {
  readonly commands: readonly Command<unknown>[];
  read(replies: readonly unknown[]): T;
}

export abstract class Call<T> {
  /** Nothing is sent before a database runs a call. */
  abstract run(session: Session): Promise<T>;

  /** Return the commands, or null for a call of several round trips. */
  abstract pieces(): Pieces<T> | null;

  /** Return the same call with its value passed through a function. */
  map<U>(change: (value: T) => U): Call<U> {
    return new Mapped(this, change);
  }
}

export interface CommandOptions {
  readonly effect?: Effect;
  /** The expiry is an option of the command (SET, GETEX) instead of a command after it. */
  readonly inline?: boolean;
  /** What was under the name before is deleted in the same transaction. */
  readonly replaces?: boolean;
  readonly before?: readonly Word[];
  readonly waits?: boolean;
  /** More keys, after the first. */
  readonly others?: readonly Key[];
}

/** One command on one key, with what gives the key its expiry. */
export class Command<T> extends Call<T> {
  constructor(
    readonly key: Key,
    readonly verb: string,
    readonly operands: readonly Word[],
    readonly decode: (reply: Reply) => T,
    readonly options: CommandOptions = {},
  ) {
    super();
  }

  override async run(session: Session): Promise<T> {
    const lowered = this.lower(session);
    if (this.options.waits) return this.read(await session.wait(words(lowered[0]!)), session);
    const [replies] = await session.exchange([lowered.map(words)]);
    return this.readGroup(replies!, session);
  }

  override pieces(): Pieces<T> {
    return { commands: [this], read: ([value]) => value as T };
  }

  lower(session: Session): Lowered[] {
    const { key, options } = this;
    const name = key.fullName(session.lead(key.space));
    const { redisType } = key;
    const { effect = "none", before = [] } = options;
    const option = options.inline ? expiryOption(key.expiry, effect, key.source) : [];
    const others = (options.others ?? []).map((other) => other.fullName(session.lead(other.space)));
    const own: Lowered = { verb: this.verb, name, before, operands: [...others, ...this.operands, ...option], redisType };
    const commands: Lowered[] = options.replaces ? [{ verb: "UNLINK", name, before: [], operands: [], redisType }, own] : [own];
    const after = options.inline ? null : expiryCommand(key.expiry, effect, key.source);
    if (after !== null) commands.push({ verb: after.verb, name, before: [], operands: after.operands, redisType });
    return commands;
  }

  /** Return the value of the replies of one group. */
  readGroup(replies: readonly Reply[], session: Session): T {
    for (const reply of replies) checked(reply);
    return this.read(replies[this.options.replaces ? 1 : 0] ?? null, session);
  }

  private read(reply: Reply, session: Session): T {
    const found = checked(reply);
    try {
      return this.decode(found);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      const name = this.key.fullName(session.lead(this.key.space)).toString("utf8");
      throw new StoredDataError(name, this.key.source, error.expected, this.key.hides ? "<secret>" : error.found);
    }
  }
}

/** Return a command as it is sent outside a commit. */
export function words(command: Lowered): readonly Word[] {
  if (command.verb === "EXPIRE_ONCE") return ["EVAL", EXPIRE_ONCE.source, 1, command.name, ...command.operands];
  return [...command.verb.split(" "), ...command.before, command.name, ...command.operands];
}

class Mapped<S, T> extends Call<T> {
  constructor(
    private readonly call: Call<S>,
    private readonly change: (value: S) => T,
  ) {
    super();
  }

  override async run(session: Session): Promise<T> {
    return this.change(await this.call.run(session));
  }

  override pieces(): Pieces<T> | null {
    const inner = this.call.pieces();
    return inner && { commands: inner.commands, read: (values) => this.change(inner.read(values)) };
  }
}

/** A value that needs no round trip, where a call is expected. */
export class Ready<T> extends Call<T> {
  constructor(private readonly value: T) {
    super();
  }

  override run(): Promise<T> {
    return Promise.resolve(this.value);
  }

  override pieces(): Pieces<T> {
    return { commands: [], read: () => this.value };
  }
}

/** An operation of several round trips. */
export class Procedure<T> extends Call<T> {
  constructor(private readonly steps: (session: Session) => Promise<T>) {
    super();
  }

  override run(session: Session): Promise<T> {
    return this.steps(session);
  }

  override pieces(): null {
    return null;
  }
}

/** Return the pieces of calls that are to be written together. */
export function piecesOf(calls: readonly Call<unknown>[], where: string): Pieces<unknown>[] {
  return calls.map((call) => {
    const pieces = call.pieces();
    if (pieces === null) throw new UsageError(`a call that reads before it writes cannot be part of ${where}. Run it by itself.`);
    if (pieces.commands.some((command) => command.options.waits)) throw new UsageError(`a call that waits cannot be part of ${where}.`);
    return pieces;
  });
}
