/** JSON Schema at run time: whether a value conforms, and how its parts are written. */

import { CodecError, excerpt } from "./errors.js";

/** A whole number, as a bigint beyond ±2**53. */
export type Integer = number | bigint;

/** A value of free JSON. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | { readonly [name: string]: Json };

/** The part of JSON Schema that schema files use. */
export interface Shape {
  readonly $ref?: string;
  readonly type?: "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Shape | boolean;
  readonly propertyNames?: Shape;
  readonly prefixItems?: readonly Shape[];
  readonly items?: Shape | boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly Shape[];
  readonly enum?: readonly (string | number)[];
  readonly contentEncoding?: "base64";
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly default?: unknown;
  readonly "x-omit-defaults"?: boolean;
}

export type Shapes = Readonly<Record<string, Shape>>;

const ANYTHING: Shape = {};
const LOWEST = -(2n ** 63n);
const HIGHEST = 2n ** 64n - 1n;

/** The shapes of one codec: a root, and what its `$ref` lead to. */
export class Shaped {
  constructor(
    readonly root: Shape,
    private readonly definitions: Shapes,
    /** Whether bytes are bytes, as in MessagePack, or text in base64. */
    private readonly binary: boolean,
  ) {}

  /** Return a shape with its reference followed. */
  resolved(shape: Shape): Shape {
    let found = shape;
    while (found.$ref !== undefined) {
      const next = this.definitions[found.$ref.replace("#/$defs/", "")];
      if (next === undefined) throw new CodecError("a known shape", found.$ref);
      found = next;
    }
    return found;
  }

  /** Return the shape of a union to which a value conforms; the shape itself if it is not a union. */
  chosen(shape: Shape, value: unknown): Shape {
    const found = this.resolved(shape);
    if (found.anyOf === undefined) return found;
    const arm = found.anyOf.find((each) => this.problem(each, value) === null);
    return arm === undefined ? ANYTHING : this.chosen(arm, value);
  }

  /** Return where a value does not conform to a shape, and what is expected there; null if it conforms. */
  problem(shape: Shape, value: unknown, path = "$"): string | null {
    const found = this.resolved(shape);
    if (found.anyOf !== undefined) {
      return found.anyOf.some((arm) => this.problem(arm, value, path) === null) ? null : wrong(path, "one of several shapes", value);
    }
    if (found.enum !== undefined) return found.enum.includes(value as string) ? null : wrong(path, `one of ${found.enum.slice(0, 6).join(", ")}`, value);
    switch (found.type) {
      case "null":
        return value === null ? null : wrong(path, "null", value);
      case "boolean":
        return typeof value === "boolean" ? null : wrong(path, "a boolean", value);
      case "integer":
        return isInteger(value) && inRange(found, Number(value)) ? null : wrong(path, "a whole number", value);
      case "number":
        return typeof value === "number" && Number.isFinite(value) && inRange(found, value) ? null : wrong(path, "a number", value);
      case "string":
        return this.textProblem(found, value, path);
      case "array":
        return this.itemsProblem(found, value, path);
      case "object":
        return this.membersProblem(found, value, path);
      default:
        return null;
    }
  }

  private textProblem(shape: Shape, value: unknown, path: string): string | null {
    if (this.binary && shape.contentEncoding !== undefined) return value instanceof Uint8Array ? null : wrong(path, "bytes", value);
    if (typeof value !== "string" || !value.isWellFormed()) return wrong(path, "text", value);
    const length = [...value].length;
    const fits = length >= (shape.minLength ?? 0) && length <= (shape.maxLength ?? Infinity);
    return fits && (shape.pattern === undefined || new RegExp(shape.pattern, "u").test(value)) ? null : wrong(path, "text of another form", value);
  }

  private itemsProblem(shape: Shape, value: unknown, path: string): string | null {
    if (!Array.isArray(value)) return wrong(path, "an array", value);
    const { prefixItems = [], items = true, minItems = 0, maxItems = Infinity } = shape;
    const most = items === false ? prefixItems.length : maxItems;
    if (value.length < minItems || value.length > most) return wrong(path, "an array of another length", value);
    for (const [place, item] of value.entries()) {
      const problem = this.problem(itemShape(shape, place), item, `${path}[${place}]`);
      if (problem !== null) return problem;
    }
    return null;
  }

  private membersProblem(shape: Shape, value: unknown, path: string): string | null {
    if (!isObject(value)) return wrong(path, "an object", value);
    for (const name of shape.required ?? []) {
      if (value[name] === undefined) return wrong(`${path}.${name}`, "a member", undefined);
    }
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue;
      if (memberShape(shape, name) === null) return wrong(`${path}.${name}`, "no such member", member);
      const problem = this.problem(memberShape(shape, name) ?? ANYTHING, member, `${path}.${name}`);
      if (problem !== null) return problem;
    }
    return null;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array) && !(value instanceof Map);
}

/** Return the shape of a member; null if there must not be one of that name. */
export function memberShape(shape: Shape, name: string): Shape | null {
  const own = shape.properties;
  if (own !== undefined && Object.hasOwn(own, name)) return own[name]!;
  const { additionalProperties = true } = shape;
  return additionalProperties === true ? ANYTHING : additionalProperties || null;
}

export function itemShape(shape: Shape, place: number): Shape {
  const { prefixItems = [], items = true } = shape;
  return prefixItems[place] ?? (typeof items === "boolean" ? ANYTHING : items);
}

/** Return the members of an object in the order in which they are written, without those left out. */
export function membersOf(shape: Shape, value: Record<string, unknown>): [string, unknown][] {
  const declared = Object.keys(shape.properties ?? {});
  const others = Object.keys(value).filter((name) => !declared.includes(name));
  const written = [...declared, ...others].filter((name) => Object.hasOwn(value, name) && value[name] !== undefined);
  const kept = shape["x-omit-defaults"] ? written.filter((name) => !isDefault(memberShape(shape, name), value[name])) : written;
  return kept.map((name) => [name, value[name]]);
}

function isDefault(shape: Shape | null, value: unknown): boolean {
  if (shape === null || !("default" in shape)) return false;
  const text = (each: unknown): string | undefined => JSON.stringify(each, (_, part: unknown) => (typeof part === "bigint" ? Number(part) : part));
  return text(shape.default) === text(value);
}

function isInteger(value: unknown): boolean {
  return typeof value === "bigint" ? value >= LOWEST && value <= HIGHEST : Number.isSafeInteger(value);
}

function inRange(shape: Shape, value: number): boolean {
  return (
    value >= (shape.minimum ?? -Infinity) &&
    value <= (shape.maximum ?? Infinity) &&
    value > (shape.exclusiveMinimum ?? -Infinity) &&
    value < (shape.exclusiveMaximum ?? Infinity)
  );
}

function wrong(path: string, expected: string, found: unknown): string {
  return `${expected} at ${path.slice(0, 120)}, found ${excerpt(found)}`;
}
