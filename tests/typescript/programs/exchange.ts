/**
 * Read every key that Python wrote, and write what was read under a prefix of our own.
 *
 * Arguments: the client, the URL, the module, and a JSON file from the name of a kind to its names in base64.
 * Prints how many names were parsed, and how many values were copied.
 */

import { readFileSync } from "node:fs";

import * as kw from "keywright";

import { connected } from "./client.js";

const COPY = "copy";
const TOGETHER = 250;

type AnyType = kw.KeyType<any, kw.Key>;

async function copied(db: kw.Database, copy: kw.Database, key: kw.Key): Promise<boolean> {
  if (key instanceof kw.ValueKey) {
    const value = await db.run(key.get());
    const options = key.expiry?.computed === undefined ? {} : { expiry: { ms: 60_000 } };
    return copy.run(key.set(found(value), options));
  }
  if (key instanceof kw.CounterKey) await copy.run(key.set(await db.run(key.get())));
  else if (key instanceof kw.RecordKey) await copy.run(key.put(found(await db.run(key.get()))));
  else if (key instanceof kw.MapKey) await copy.run(key.replace(await db.run(key.all())));
  else if (key instanceof kw.SetKey) await copy.run(key.replace(await db.run(key.members())));
  else if (key instanceof kw.SortedSetKey) await copy.run(key.replace(await db.run(key.range())));
  else if (key instanceof kw.ListKey) await copy.run(key.replace(await db.run(key.range())));
  else if (key instanceof kw.StreamKey) {
    for (const { id, value } of await db.run(key.range())) await copy.run(key.add(value, { id }));
  } else if (key instanceof kw.LeaseKey) {
    return copy.run(key.acquire(found(await db.run(key.holder())), 60_000));
  } else if (key instanceof kw.ClaimKey) {
    if ((await db.run(key.state())) !== "done") throw new Error("the claim is not done");
    await copy.run(key.begin("token", 60_000));
    return copy.run(key.finish("token"));
  } else if (key instanceof kw.BitFieldsKey) await copy.run(key.put(await db.run(key.get())));
  else if (key instanceof kw.BitmapKey) {
    for (let offset = 0; offset < 64; offset += 1) if (await db.run(key.get(offset))) await copy.run(key.set(offset));
  } else if (key instanceof kw.GeoKey) {
    for (const member of await db.run(key.members())) await copy.run(key.add(member, found(await db.run(key.position(member)))));
  } else return false;
  return true;
}

function found<T>(value: T | null): T {
  if (value === null) throw new Error("a value is missing");
  return value;
}

function rebuilt(type: AnyType, kind: string, name: Buffer): kw.Key {
  const values = type.parse(name);
  if (values === null) throw new Error(`${kind} does not parse ${name.toString()}`);
  const key = type.key(values);
  if (!key.name.equals(name)) throw new Error(`${kind} makes ${key.name.toString()} of ${name.toString()}`);
  return key;
}

const [, , library = "", url = "", module = "", file = ""] = process.argv;
const { keys } = (await import(module)) as { keys: Record<string, AnyType> };
const names = JSON.parse(readFileSync(file, "utf8")) as Record<string, string[]>;
const client = await connected(library, url);
const db = kw.database(client.adapter);
const spaces = Object.values(keys).map(({ space }) => space);
const prefixes = Object.fromEntries(spaces.map(({ name, prefix }) => [name, prefix === "" ? COPY : `${COPY}:${prefix}`]));
const copy = kw.database(client.adapter, { prefixes });
let parsed = 0;
let written = 0;
for (const [kind, listed] of Object.entries(names)) {
  const type = keys[kind];
  if (type === undefined) throw new Error(`there is no ${kind}`);
  const built = listed.map((name) => rebuilt(type, kind, Buffer.from(name, "base64")));
  parsed += built.length;
  for (let start = 0; start < built.length; start += TOGETHER) {
    const done = await Promise.all(
      built.slice(start, start + TOGETHER).map((key) =>
        copied(db, copy, key).catch((error: unknown) => {
          throw new Error(`${kind} ${key.name.toString()}: ${String(error)}`, { cause: error });
        }),
      ),
    );
    written += done.filter(Boolean).length;
  }
}
console.log(JSON.stringify({ parsed, written }));
await db.close();
await client.close();
