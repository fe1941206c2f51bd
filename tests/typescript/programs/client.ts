/** A connected client of the library that the first argument names, as an adapter. */

import { createClient } from "@redis/client";
import { Redis } from "ioredis";
import type { Adapter } from "keywright";
import { ioredis } from "keywright/ioredis";
import { nodeRedis } from "keywright/node-redis";

export interface Connected {
  readonly adapter: Adapter;
  close(): Promise<unknown>;
}

export async function connected(library: string, url: string): Promise<Connected> {
  if (library === "ioredis") {
    const client = new Redis(url, { stringNumbers: true });
    return { adapter: ioredis(client), close: () => client.quit() };
  }
  const client = createClient({ url });
  await client.connect();
  return { adapter: nodeRedis(client), close: () => client.close() };
}
