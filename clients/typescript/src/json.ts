/** JSON as msgspec writes it: compact, members in declared order, whole numbers exact. */

import { type Codec, refusal, utf8 } from "./codecs.js";
import { CodecError } from "./errors.js";
import { type Shape, Shaped, type Shapes, isObject, itemShape, membersOf, memberShape } from "./shapes.js";

const DEEPEST = 200;
const LONG_DIGITS = /\d{16}/u;

/** JSON of a shape. Reading and writing check the value. */
export function json<T>(shape: Shape, definitions: Shapes = {}): Codec<T> {
  const shaped = new Shaped(shape, definitions, false);
  return {
    expected: "JSON",
    encode(value) {
      const problem = shaped.problem(shape, value);
      if (problem !== null) throw new CodecError(`JSON: ${problem.split(", found ")[0]}`, problem.split(", found ")[1] ?? "");
      try {
        return Buffer.from(written(shaped, shape, value, 0));
      } catch (error) {
        throw refusal(this, value, error instanceof Error ? error.message : "");
      }
    },
    decode(data) {
      const found = utf8(data);
      if (found === null) throw refusal(this, data);
      let value: unknown;
      try {
        value = parse(found);
      } catch {
        throw refusal(this, data, "malformed");
      }
      const problem = shaped.problem(shape, value);
      if (problem !== null) throw new CodecError(`JSON: ${problem.split(", found ")[0]}`, problem.split(", found ")[1] ?? "");
      return value as T;
    },
  };
}

/** Parse JSON; a whole number beyond ±2**53 is a bigint. */
export function parse(source: string): unknown {
  return LONG_DIGITS.test(source) ? new Parser(source).whole() : JSON.parse(source);
}

/** Parses JSON with long numbers. Strings and other numbers are left to JSON.parse. */
class Parser {
  private place = 0;

  constructor(private readonly source: string) {}

  whole(): unknown {
    const value = this.value(0);
    this.space();
    if (this.place !== this.source.length) throw new SyntaxError("more than one value");
    return value;
  }

  private value(depth: number): unknown {
    if (depth > 4 * DEEPEST) throw new SyntaxError("nested too deeply");
    this.space();
    const first = this.source[this.place];
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    const token = this.match(first === '"' ? /"(?:[^"\\]|\\.)*"/suy : /[-+.\w]+/uy);
    if (!/^-?\d+$/u.test(token)) return JSON.parse(token);
    const near: unknown = JSON.parse(token);
    return Number.isSafeInteger(near) || Object.is(near, -0) ? near : BigInt(token);
  }

  private object(depth: number): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    this.list("}", () => {
      const name = JSON.parse(this.match(/"(?:[^"\\]|\\.)*"/suy)) as string;
      this.space();
      this.match(/:/uy);
      Object.defineProperty(found, name, { value: this.value(depth + 1), writable: true, enumerable: true, configurable: true });
    });
    return found;
  }

  private array(depth: number): unknown[] {
    const found: unknown[] = [];
    this.list("]", () => found.push(this.value(depth + 1)));
    return found;
  }

  private list(end: string, item: () => void): void {
    this.place += 1;
    this.space();
    if (this.source[this.place] === end) {
      this.place += 1;
      return;
    }
    for (;;) {
      this.space();
      item();
      this.space();
      const next = this.source[this.place];
      this.place += 1;
      if (next === end) return;
      if (next !== ",") throw new SyntaxError("a comma is missing");
    }
  }

  private space(): void {
    this.match(/[ \t\n\r]*/uy);
  }

  private match(expression: RegExp): string {
    expression.lastIndex = this.place;
    const found = expression.exec(this.source);
    if (found === null) throw new SyntaxError("malformed JSON");
    this.place += found[0].length;
    return found[0];
  }
}

/** Return a value as JSON, by its shape. It must conform. */
function written(shaped: Shaped, shape: Shape, value: unknown, depth: number): string {
  if (depth > DEEPEST) throw new Error(`nested deeper than ${DEEPEST} levels`);
  const chosen = shaped.chosen(shape, value);
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw new Error("a lone surrogate");
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "bigint":
      return value.toString();
    case "number":
      return numberText(value, chosen.type === "number");
  }
  if (value === null) return "null";
  if (Array.isArray(value)) {
    return `[${value.map((item, place) => written(shaped, itemShape(chosen, place), item, depth + 1)).join(",")}]`;
  }
  if (!isObject(value) || (Object.getPrototypeOf(value) !== Object.prototype && Object.getPrototypeOf(value) !== null)) {
    throw new Error("only plain objects and arrays are JSON");
  }
  const members = membersOf(chosen, value).map(([name, member]) => {
    if (!name.isWellFormed()) throw new Error("a lone surrogate");
    return `${JSON.stringify(name)}:${written(shaped, memberShape(chosen, name) ?? {}, member, depth + 1)}`;
  });
  return `{${members.join(",")}}`;
}

/** Return a number as msgspec writes it: `1.0` where the type is a float, `1` where it is not. */
function numberText(value: number, isFloat: boolean): string {
  if (!Number.isFinite(value)) throw new Error("JSON has no nan and no infinity");
  if (!isFloat && Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  const [mantissa = "", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -5 || exponent > 15) return `${mantissa}e${exponent}`;
  const plain = Object.is(value, -0) ? "-0" : String(value);
  const fixed = plain.includes("e") ? value.toFixed(20).replace(/0+$/u, "") : plain;
  return fixed.includes(".") ? fixed : `${fixed}.0`;
}
