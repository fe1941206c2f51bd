/** The adapter of ioredis. */

import type { Redis } from "ioredis";

import { type Adapter, type Reply, type Word, normalised, wireWord } from "./adapter.js";
import { ReplyError, UnsupportedError, UsageError } from "./errors.js";

/** Use a client of ioredis. Counters beyond 2**53 need its option `stringNumbers: true`. */
export function ioredis(client: Redis): Adapter {
  if (client.isCluster) throw new UnsupportedError("ioredis", "a Cluster is not supported. Use a client of a single server.");
  if (client.options.keyPrefix) throw new UsageError("the client has a keyPrefix, which would hide the names. Pass prefixes to database() instead.");
  return new IoredisAdapter(client);
}

class IoredisAdapter implements Adapter {
  private readonly opened = new Set<Redis>();
  private readonly idle: Redis[] = [];

  constructor(private readonly client: Redis) {}

  send(commands: readonly (readonly Word[])[]): Promise<Reply[]> {
    return Promise.all(commands.map((command) => called(this.client, command)));
  }

  async transaction(commands: readonly (readonly Word[])[]): Promise<Reply[]> {
    const multi = this.client.multi();
    for (const command of commands) {
      const [verb = "", ...rest] = command.map(wireWord);
      multi.callBuffer(String(verb), ...rest);
    }
    const results = await multi.exec();
    if (results === null) throw new ReplyError("the transaction was discarded.");
    return results.map(([error, reply]) => normalised(error ?? reply));
  }

  async wait(command: readonly Word[]): Promise<Reply> {
    const connection = this.idle.pop() ?? this.client.duplicate();
    this.opened.add(connection);
    try {
      const reply = await called(connection, command);
      this.idle.push(connection);
      return reply;
    } catch (error) {
      this.opened.delete(connection);
      connection.disconnect();
      throw error;
    }
  }

  close(): Promise<void> {
    for (const connection of this.opened) connection.disconnect();
    this.opened.clear();
    this.idle.length = 0;
    return Promise.resolve();
  }
}

async function called(client: Redis, command: readonly Word[]): Promise<Reply> {
  const [verb = "", ...rest] = command.map(wireWord);
  try {
    return normalised(await client.callBuffer(String(verb), ...rest));
  } catch (error) {
    if (error instanceof Error && error.name === "ReplyError") return new ReplyError(error.message);
    throw error;
  }
}
