/** The adapter of node-redis. */

import { ErrorReply, RESP_TYPES } from "@redis/client";

import { type Adapter, type Reply, type Word, normalised, wireWord } from "./adapter.js";
import { ReplyError } from "./errors.js";

type Words = readonly (string | Buffer)[];

/** What this package uses of a client of node-redis, so that every version and set of modules fits. */
export interface NodeRedisClient {
  sendCommand(words: Words, options?: { readonly chainId?: symbol }): Promise<unknown>;
  withTypeMapping(mapping: Readonly<Record<number, unknown>>): NodeRedisClient;
  duplicate(): NodeRedisClient;
  connect(): Promise<unknown>;
  destroy(): void;
}

// Bytes as they are, and numbers as their digits: neither passes through a float or UTF-8.
const MAPPING = {
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.SIMPLE_STRING]: Buffer,
  [RESP_TYPES.VERBATIM_STRING]: Buffer,
  [RESP_TYPES.NUMBER]: String,
  [RESP_TYPES.DOUBLE]: String,
  [RESP_TYPES.BIG_NUMBER]: String,
  [RESP_TYPES.MAP]: Array,
  [RESP_TYPES.SET]: Array,
};

/** Use a connected client of node-redis, made by createClient. */
export function nodeRedis(client: object): Adapter {
  return new NodeRedisAdapter((client as NodeRedisClient).withTypeMapping(MAPPING));
}

class NodeRedisAdapter implements Adapter {
  private readonly clients = new Set<NodeRedisClient>();
  private readonly idle: NodeRedisClient[] = [];

  constructor(private readonly client: NodeRedisClient) {}

  send(commands: readonly (readonly Word[])[]): Promise<Reply[]> {
    return Promise.all(commands.map((command) => sent(this.client, command)));
  }

  // Not by multi(): that decodes the replies of EXEC as text, whatever the mapping says.
  async transaction(commands: readonly (readonly Word[])[]): Promise<Reply[]> {
    const chainId = Symbol("transaction");
    const sending = [["MULTI"], ...commands, ["EXEC"]].map((command) => sent(this.client, command, chainId));
    const replies = await Promise.all(sending);
    const executed = replies.at(-1) ?? null;
    if (Array.isArray(executed)) return executed;
    // A command that was refused when it was queued says why; EXEC says only that nothing was done.
    const refused = replies.find((reply) => reply instanceof ReplyError);
    throw refused ?? new ReplyError("the transaction was discarded.");
  }

  async wait(command: readonly Word[]): Promise<Reply> {
    const connection = this.idle.pop() ?? (await this.opened());
    try {
      const reply = await sent(connection, command);
      this.idle.push(connection);
      return reply;
    } catch (error) {
      this.clients.delete(connection);
      connection.destroy();
      throw error;
    }
  }

  close(): Promise<void> {
    for (const connection of this.clients) connection.destroy();
    this.clients.clear();
    this.idle.length = 0;
    return Promise.resolve();
  }

  private async opened(): Promise<NodeRedisClient> {
    const connection = this.client.duplicate();
    await connection.connect();
    const mapped = connection.withTypeMapping(MAPPING);
    this.clients.add(mapped);
    return mapped;
  }
}

async function sent(client: NodeRedisClient, command: readonly Word[], chainId?: symbol): Promise<Reply> {
  try {
    return normalised(await client.sendCommand(command.map(wireWord), chainId === undefined ? {} : { chainId }));
  } catch (error) {
    if (error instanceof ErrorReply) return normalised(error);
    throw error;
  }
}
