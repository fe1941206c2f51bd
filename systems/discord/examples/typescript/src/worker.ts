/**
 * A worker that prints every message with the names of its server, channel and author, from the cache.
 *
 * `log_worker.py` does the same in Python: give the two different subgroups, or let them share the work of one.
 * It handles every event at least once: an entry is acknowledged when it is printed, a restart takes over what
 * was left, and what fails three times goes to the dead letters, which `keywright broker` shows and replays.
 */

import { randomUUID } from "node:crypto";

import { Redis } from "ioredis";
import * as kw from "keywright";
import { ioredis } from "keywright/ioredis";

import * as drc from "./drc.js";
import * as streams from "./streams.js";

const GROUP = "gateway:log";
const EVENT = "MESSAGE_CREATE";
const ATTEMPTS = 3;
const IDLE_MS = 60_000;

/** What this worker reads of an event. A direct message has no guild. */
interface Message {
  readonly id: string;
  readonly channel_id: string;
  readonly guild_id?: string;
  readonly content: string;
  readonly author: { readonly id: string };
}

class Worker {
  private readonly stream = streams.EventStream.key({ event: EVENT });
  private readonly dead = streams.DeadLetters.key({ event: EVENT, group: GROUP });
  private readonly consumer = `typescript-${randomUUID()}`;
  private stopping = false;

  constructor(private readonly db: kw.Database) {}

  async run(): Promise<void> {
    await this.db.run(this.stream.createGroup(GROUP, "$"));
    await this.takeOver();
    console.log("log: ready");
    while (!this.stopping) {
      await this.handle(await this.db.run(this.stream.consume(GROUP, this.consumer, { count: 10, waitMs: 500 })));
    }
  }

  stop(): void {
    this.stopping = true;
  }

  /** Handle what workers left that are gone. */
  private async takeOver(): Promise<void> {
    let cursor = "0-0";
    do {
      const page = await this.db.run(this.stream.reclaim(GROUP, this.consumer, IDLE_MS, { cursor }));
      await this.handle(page.entries);
      cursor = page.cursor;
    } while (cursor !== "0-0" && !this.stopping);
  }

  private async handle(entries: readonly kw.Entry<streams.Posted>[]): Promise<void> {
    for (const entry of entries) {
      // A replayed dead letter is for one group only.
      if (entry.value.only === "" || entry.value.only === GROUP) await this.tried(entry);
      await this.db.run(this.stream.acknowledge(GROUP, entry.id));
    }
  }

  private async tried({ id, value: { data } }: kw.Entry<streams.Posted>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const message = JSON.parse(Buffer.from(data).toString()) as Message;
        if (message.guild_id !== undefined) console.log(await this.line(message, message.guild_id));
        return;
      } catch (error) {
        if (attempt < ATTEMPTS) continue;
        const reason = error instanceof Error ? error.name : "an error";
        await this.db.run(this.dead.add({ data, reason, attempts: BigInt(attempt), id, at: new Date() }));
        return;
      }
    }
  }

  /** Return one line of the log. The reads share a round trip. */
  private async line(message: Message, guild: string): Promise<string> {
    const [server, channel, author] = await this.db.all([
      drc.Guild.key({ guild }).get(),
      drc.Channels.key({ guild }).get(message.channel_id),
      drc.User.key({ user: message.author.id }).get(),
    ]);
    return `${named(server, "name") ?? guild} #${named(channel, "name") ?? message.channel_id} ${named(author, "username") ?? message.author.id}: ${message.content}`;
  }
}

function named(found: { readonly [name: string]: kw.Json } | null, member: string): string | null {
  const name = found?.[member];
  return typeof name === "string" ? name : null;
}

const { REDIS_URL = "redis://localhost", CACHE_PREFIX = "example" } = process.env;
const client = new Redis(REDIS_URL);
const db = kw.database(ioredis(client), { prefixes: { drc: CACHE_PREFIX } });
const worker = new Worker(db);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => worker.stop());
await worker.run();
await db.close();
await client.quit();
