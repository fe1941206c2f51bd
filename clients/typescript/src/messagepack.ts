/** MessagePack as msgspec writes it, with `@msgpack/msgpack` for what is not an array or an object. */

import { decode, encode } from "@msgpack/msgpack";

import { type Codec, refusal } from "./codecs.js";
import { CodecError } from "./errors.js";
import { type Shape, Shaped, type Shapes, isObject, itemShape, membersOf, memberShape } from "./shapes.js";

/** MessagePack of a shape. Reading and writing check the value. */
export function messagePack<T>(shape: Shape, definitions: Shapes = {}): Codec<T> {
  const shaped = new Shaped(shape, definitions, true);
  function check(value: unknown): void {
    const problem = shaped.problem(shape, value);
    if (problem !== null) throw new CodecError(`MessagePack: ${problem.split(", found ")[0]}`, problem.split(", found ")[1] ?? "");
  }
  return {
    expected: "MessagePack",
    encode(value) {
      check(value);
      return Buffer.concat([...packed(shaped, shape, value, 0)]);
    },
    decode(data) {
      let value: unknown;
      try {
        value = narrowed(decode(data, { useBigInt64: true }));
      } catch {
        throw refusal(this, data, "malformed");
      }
      check(value);
      return value as T;
    },
  };
}

/** Return a value with a number for each bigint that one holds exactly: the library makes bigints of all 64-bit forms. */
function narrowed(value: unknown): unknown {
  if (typeof value === "bigint") return value >= -(2n ** 53n) + 1n && value < 2n ** 53n ? Number(value) : value;
  if (Array.isArray(value)) return value.map(narrowed);
  if (!isObject(value) || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, narrowed(member)]));
}

function* packed(shaped: Shaped, shape: Shape, value: unknown, depth: number): Generator<Uint8Array> {
  if (depth > 200) throw new CodecError("MessagePack", "a value nested deeper than 200 levels");
  const chosen = shaped.chosen(shape, value);
  if (Array.isArray(value)) {
    yield header(value.length, 0x90, 0xdc);
    for (const [place, item] of value.entries()) yield* packed(shaped, itemShape(chosen, place), item, depth + 1);
  } else if (isObject(value)) {
    const members = membersOf(chosen, value);
    yield header(members.length, 0x80, 0xde);
    for (const [name, member] of members) {
      yield encode(name);
      yield* packed(shaped, memberShape(chosen, name) ?? {}, member, depth + 1);
    }
  } else {
    // A float stays one, also where it is whole; a bigint is written in full width, which only large ones need.
    const plain = typeof value === "bigint" ? narrowed(value) : value;
    yield encode(plain, { useBigInt64: true, forceIntegerToFloat: chosen.type === "number" });
  }
}

function header(length: number, short: number, long: number): Uint8Array {
  if (length < 16) return Uint8Array.of(short | length);
  const wide = length > 0xffff;
  const found = Buffer.alloc(wide ? 5 : 3);
  found[0] = wide ? long + 1 : long;
  if (wide) found.writeUInt32BE(length, 1);
  else found.writeUInt16BE(length, 1);
  return found;
}
