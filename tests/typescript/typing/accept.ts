/** What the compiler must accept. */

import * as kw from "keywright";
import { ioredis } from "keywright/ioredis";
import { nodeRedis } from "keywright/node-redis";
import { createClient } from "@redis/client";
import { Redis } from "ioredis";

import * as drc from "./drc.js";
import * as kinds from "./every_kind.js";
import * as meetup from "./meetup.js";
import * as openmod from "./openmod.js";
import * as streams from "./spectacles_streams.js";

export async function accepted(): Promise<void> {
  const db = kw.database(ioredis(new Redis()), { prefixes: { drc: "bot" } });
  const other = kw.database(nodeRedis(createClient()));

  const message = drc.Message.key({ message: "112233" });
  await db.run(message.set({ content: "hello", mentions: [1, null], size: 2n ** 60n }, { when: "absent" }));
  const value: kw.Json | null = await db.run(message.get());
  const parsed: { readonly message: string } | null = drc.Message.parse(Buffer.from("messages:1"));
  const guilds: string[] = await db.run(drc.Guilds.key().members());

  const channel: bigint | null = await db.run(meetup.channelOfSeriesRelation.of("series"));
  const changed: boolean = await other.run(meetup.seriesOfEventRelation.assign("event", "series", { also: [meetup.MeetupEvents.key().add("event")] }));

  const sold: bigint = await db.run(kinds.Sales.key({ sku: "a" }).add(2));
  const tagged: readonly string[] = await db.run(drc.Reactions.key({ message: "1" }).members());
  const due: kw.Claimed<string>[] = await db.run(openmod.PendingEvents.key().claimDue(10, 1000));
  const entries: kw.Entry<streams.Posted>[] = await db.run(streams.EventStream.key({ event: "E" }).read());
  const both: [kw.Json | null, bigint] = await db.all([message.get(), kinds.Sales.key({ sku: "a" }).get()]);
  const titled = kinds.Titles.key({ sku: "a", lang: null });
  await db.transaction([message.delete(), titled.set("x", { expiry: { ms: 5 } })]);
  void [value, parsed, guilds, channel, changed, sold, tagged, due, entries, both];
}
