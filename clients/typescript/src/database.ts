/** A database: a client with the leads of its keyspaces. */

import { type Adapter, type Reply, type Word, asText, checked } from "./adapter.js";
import { type Call, type Pieces, type Session, piecesOf, words } from "./calls.js";
import { ReplyError, UnsupportedError } from "./errors.js";
import { type Space, leadOf } from "./keys.js";
import type { Script } from "./scripts.js";

export interface DatabaseOptions {
  /** The prefixes of keyspaces by name: `{ drc: "bot" }`. Keyspaces that are not named keep their own. */
  readonly prefixes?: Readonly<Record<string, string>>;
}

type Results<Calls extends readonly Call<unknown>[]> = { -readonly [Place in keyof Calls]: Calls[Place] extends Call<infer T> ? T : never };

export class Database implements Session {
  private oneNode: Promise<boolean> | null = null;

  constructor(
    private readonly adapter: Adapter,
    private readonly options: DatabaseOptions = {},
  ) {}

  /** Run a call and return its value. */
  run<T>(call: Call<T>): Promise<T> {
    return call.run(this);
  }

  /** Run calls together, in as few round trips as they need. Each is atomic, all of them are not. */
  async all<const Calls extends readonly Call<unknown>[]>(calls: Calls): Promise<Results<Calls>> {
    return (await Promise.all(calls.map((call) => call.run(this)))) as Results<Calls>;
  }

  /** Run calls in one transaction (MULTI). A call that reads before it writes is refused. */
  async transaction<const Calls extends readonly Call<unknown>[]>(calls: Calls): Promise<Results<Calls>> {
    const pieces = piecesOf(calls, "a transaction");
    const commands = pieces.flatMap((each) => each.commands);
    const groups = commands.map((command) => command.lower(this).map(words));
    const replies = commands.length === 0 ? [] : await this.adapter.transaction(groups.flat());
    let place = 0;
    const values = commands.map((command, index) => {
      const end = place + groups[index]!.length;
      const value = command.readGroup(replies.slice(place, end), this);
      place = end;
      return value;
    });
    let next = 0;
    const read = (each: Pieces<unknown>): unknown => each.read(values.slice(next, (next += each.commands.length)));
    return pieces.map(read) as Results<Calls>;
  }

  /** Close the connections that waiting calls opened. The client is yours to close. */
  close(): Promise<void> {
    return this.adapter.close();
  }

  lead(space: Space): Buffer {
    return Buffer.from(leadOf({ ...space, prefix: this.options.prefixes?.[space.name] ?? space.prefix }));
  }

  async exchange(groups: readonly (readonly (readonly Word[])[])[]): Promise<Reply[][]> {
    return Promise.all(
      groups.map((group) => (group.length === 1 ? this.adapter.send(group) : this.adapter.transaction(group))),
    );
  }

  wait(command: readonly Word[]): Promise<Reply> {
    return this.adapter.wait(command);
  }

  async script(script: Script, names: readonly Buffer[], operands: readonly Word[]): Promise<Reply> {
    const rest = [names.length, ...names, ...operands];
    const [reply] = await this.adapter.send([["EVALSHA", script.digest, ...rest]]);
    if (!(reply instanceof ReplyError && reply.message.startsWith("NOSCRIPT"))) return checked(reply);
    const [again] = await this.adapter.send([["EVAL", script.source, ...rest]]);
    return checked(again);
  }

  async requireOneNode(label: string): Promise<void> {
    this.oneNode ??= this.adapter.send([["INFO", "cluster"]]).then(([reply]) => !/cluster_enabled:1/u.test(asText(checked(reply))));
    let alone: boolean;
    try {
      alone = await this.oneNode;
    } catch (error) {
      this.oneNode = null;
      throw error;
    }
    if (!alone) {
      throw new UnsupportedError(label, "a commit on a cluster needs the journal, which only Python writes. Use a single server, or do it in Python.");
    }
  }
}

/** Open a database on an adapter: `database(ioredis(client))`. */
export function database(adapter: Adapter, options?: DatabaseOptions): Database {
  return new Database(adapter, options);
}
