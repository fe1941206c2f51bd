/** Use the operations that copying a database does not, and print what they return. Arguments: the client, the URL. */

import * as kw from "keywright";

import { connected } from "./client.js";
import * as kinds from "./every_kind.js";
import * as meetup from "./meetup.js";
import * as openmod from "./openmod.js";
import * as streams from "./spectacles_streams.js";

const [, , library = "", url = ""] = process.argv;
const client = await connected(library, url);
const db = kw.database(client.adapter);
const found: Record<string, unknown> = {};

const sales = kinds.Sales.key({ sku: "a" });
await db.run(sales.set(2n ** 63n - 2n));
found.counter = String(await db.run(sales.add()));
found.overflow = await db.run(sales.add(5)).then(() => "added", (error: unknown) => (error as Error).constructor.name);
found.taken = String(await db.run(sales.take()));
await db.run(sales.add(1));
await db.run(sales.expire(5000));
await db.run(sales.add(1));
found.window = (await db.run(sales.ttl()))! <= 5000;

const name = kinds.ArticleNames.key({ sku: "a" });
found.setAbsent = [await db.run(name.set("one", { when: "absent" })), await db.run(name.set("two", { when: "absent" }))];
await db.run(name.expire(1000));
found.sliding = [await db.run(name.get()), (await db.run(name.ttl()))! > 1_000_000];
found.swapped = await db.run(name.swap("three"));

const lease = meetup.TaskLease.key({ task: "sync" });
found.lease = [await db.run(lease.acquire("a", 60_000)), await db.run(lease.acquire("b", 60_000)), await db.run(lease.extend("a", 90_000)), await db.run(lease.holder())];
found.guarded = [
  (await db.run(kw.commit("guarded", [lease.heldBy("b")], [name.set("lost")]))).applied,
  (await db.run(kw.commit("guarded", [lease.heldBy("a")], [name.set("kept")]))).applied,
  await db.run(name.get()),
];
found.released = [await db.run(lease.release("b")), await db.run(lease.release("a"))];

const claim = openmod.EventMarker.key({ event: "e1" });
found.claim = [await db.run(claim.state()), await db.run(claim.begin("a", 60_000)), await db.run(claim.begin("b", 60_000)), await db.run(claim.state())];
found.finished = [await db.run(claim.finish("b")), await db.run(claim.finish("a", "done", [name.set("with the claim")])), await db.run(claim.state()), await db.run(name.get())];

const queue = kinds.Queue.key();
await db.run(queue.addMany([["late", new Date(Date.now() + 3_600_000)], ["due", new Date(1000)], ["also", new Date(2000)]]));
const claimed = await db.run(queue.claimDue(10, 60_000));
found.claimed = claimed.map(({ member }) => member);
found.settled = [await db.run(queue.finish(claimed[0]!)), await db.run(queue.finish(claimed[0]!)), await db.run(queue.reschedule(claimed[1]!, new Date(5000)))];
found.again = (await db.run(queue.claimDue(10, 60_000))).map(({ member }) => member);

const stream = streams.EventStream.key({ event: "E" });
found.group = [await db.run(stream.createGroup("g")), await db.run(stream.createGroup("g"))];
const waiting = db.run(stream.consume("g", "one", { waitMs: 10_000 }));
const id = await db.run(stream.add({ data: Buffer.from([0, 255]), only: "" }));
const [entry] = await waiting;
found.consumed = [entry?.id === id, [...entry!.value.data]];
found.pending = (await db.run(stream.pending("g"))).map(({ consumer, deliveries }) => [consumer, deliveries]);
found.reclaimed = (await db.run(stream.reclaim("g", "two", 0))).entries.length;
found.acknowledged = [await db.run(stream.acknowledge("g", id)), await db.run(stream.acknowledge("g", id)), (await db.run(stream.newest(1)))[0]!.id === id];
found.unknownGroup = refusal(() => kinds.Events.key({ hash: "ab".repeat(32) }).createGroup("none"));

const list = kinds.History.key({ mail: "a@b" });
const popped = db.run(list.wait(10_000));
await db.run(list.push([["x", 1], ["y", 2.5]]));
found.popped = [await popped, await db.run(list.range())];

const visitors = kinds.Visitors.key({ ulid: "0".repeat(26) });
found.visitors = [await db.run(visitors.add(1n, 2n, 2n)), await db.run(visitors.estimate())];
const places = kinds.Places.key();
await db.run(places.add("paris", { longitude: 2.35, latitude: 48.86 }));
found.near = (await db.run(places.within({ longitude: 2.3, latitude: 48.8 }, 20_000))).map(({ member }) => member);

found.transaction = await db.transaction([name.set("in"), list.length(), name.get()]);
found.rolledBack = await db.transaction([name.set("out"), list.length().map((length) => length + 1)]);
found.refused = [
  refusal(() => meetup.ChannelOfGuestRole.key({ role: 2n ** 64n })),
  refusal(() => kinds.Sizes.key({ sku: "a b" })),
  refusal(() => kinds.Sizes.key({ sku: "a" }).set("m" as "s")),
  await db.run(kinds.Tiered.key({ tier: "s", on: "2024-02-29" }).set(Buffer.from("x"))).then(() => "", (error: unknown) => (error as Error).constructor.name),
  await db.transaction([meetup.channelOfSeriesRelation.clear("s")]).then(() => "", (error: unknown) => (error as Error).constructor.name),
];
await db.run(meetup.SeriesEvents.key({ series: "wrong" }).add("e"));
const wrong = kw.value(kw.keyspace("meetup"), meetup.SeriesEvents.template, kw.text).key({ series: "wrong" });
found.wrongType = [
  await db.run(wrong.get()).then(() => "", (error: unknown) => (error as Error).constructor.name),
  await db.run(kw.commit("wrong", [], [name.set("lost"), kinds.Baskets.key({ customer: "c" }).add("a"), meetup.EventHosts.key({ event: "e" }).add(1n)])).then(({ applied }) => applied),
];
found.secret = [String(new kw.Secret("token")), refusal(() => JSON.stringify(new kw.Secret("token")))];

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).constructor.name;
  }
  return "";
}

console.log(JSON.stringify(found));
await db.close();
await client.close();
