/** Codecs: bytes from a value, and the value from the bytes. Both throw CodecError, and the key adds its name. */

import * as zlib from "node:zlib";

import type { Alphabet } from "./alphabets.js";
import { CodecError, UnsupportedError, UsageError, excerpt } from "./errors.js";

export interface Codec<T> {
  /** What the bytes are, in words. */
  readonly expected: string;
  /** Neither values nor bytes may be shown. */
  readonly secret?: boolean;
  /** False is written by leaving the member out. */
  readonly absentWhenFalse?: boolean;
  encode(value: T): Buffer;
  decode(data: Buffer): T;
}

/** Return the error to throw; it shows nothing of a secret. */
export function refusal(codec: Codec<unknown>, found: unknown, reason = ""): CodecError {
  if (codec.secret) return new CodecError(codec.expected, "<secret>");
  return new CodecError(codec.expected, excerpt(found) + (reason && ` (${reason})`));
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Return the text of bytes, or null if they are not UTF-8. */
export function utf8(data: Uint8Array): string | null {
  try {
    return UTF8.decode(data);
  } catch {
    return null;
  }
}

/** UTF-8. A lone surrogate has no UTF-8 form and is refused. */
export const text: Codec<string> = {
  expected: "UTF-8 text",
  encode(value) {
    if (typeof value !== "string" || !value.isWellFormed()) throw refusal(this, value);
    return Buffer.from(value);
  },
  decode(data) {
    const found = utf8(data);
    if (found === null) throw refusal(this, data);
    return found;
  },
};

/** Bytes, untouched. */
export const bytes: Codec<Uint8Array> = {
  expected: "bytes",
  encode(value) {
    if (!(value instanceof Uint8Array)) throw refusal(this, value);
    return Buffer.from(value);
  },
  decode: (data) => data,
};

/** An id, written as its alphabet writes it in key names. */
export function id<T>(alphabet: Alphabet<T>): Codec<T> {
  return {
    expected: alphabet.expected,
    encode: (value) => Buffer.from(alphabet.render(value)),
    decode(data) {
      const found = utf8(data);
      if (found === null) throw refusal(this, data);
      return alphabet.read(found);
    },
  };
}

/** Canonical decimal from `low` to `high`: no sign but minus, no leading zero, no space. */
export function decimalInteger(low: bigint, high: bigint, expected: string): Codec<bigint> {
  return {
    expected,
    encode(value) {
      if (typeof value !== "bigint" || value < low || value > high) throw refusal(this, value);
      return Buffer.from(value.toString());
    },
    decode(data) {
      const found = data.length <= 20 ? data.toString("latin1") : "";
      if (!/^(?:0|-?[1-9][0-9]*)$/u.test(found)) throw refusal(this, data);
      const value = BigInt(found);
      if (value < low || value > high) throw refusal(this, data);
      return value;
    },
  };
}

/** A signed 64-bit integer. */
export const int64 = decimalInteger(-(2n ** 63n), 2n ** 63n - 1n, "a signed 64-bit integer");

/** An unsigned 64-bit integer. */
export const uint64 = decimalInteger(0n, 2n ** 64n - 1n, "an unsigned 64-bit integer");

/** Return the shortest decimal of a double as Python and msgspec's hashes write it: `1.0`, `1e+16`, `5e-324`. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [mantissa = "", power = "0"] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

const FLOAT = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)$/iu;

/** Return the number of a text, or null: `inf` and `nan` too, but not a finite number beyond a double. */
export function floatOf(found: string): number | null {
  if (!FLOAT.test(found)) return null;
  const lower = found.toLowerCase();
  if (lower.includes("nan")) return Number.NaN;
  if (lower.includes("inf")) return lower.startsWith("-") ? -Infinity : Infinity;
  const value = Number(found);
  return Number.isFinite(value) ? value : null;
}

/** The shortest decimal that reads back as the same double; `inf`, `-inf`, `nan` as Redis prints them. */
export const float: Codec<number> = {
  expected: "a number",
  encode(value) {
    if (typeof value !== "number") throw refusal(this, value);
    return Buffer.from(floatText(value));
  },
  decode(data) {
    const value = floatOf(data.toString("latin1"));
    if (value === null) throw refusal(this, data);
    return value;
  },
};

/** One of a few values, each with its text. */
function choice<T>(expected: string, texts: ReadonlyMap<T, string>, absentWhenFalse = false): Codec<T> {
  const values = new Map([...texts].map(([value, written]) => [written, value]));
  return {
    expected,
    absentWhenFalse,
    encode(value) {
      const written = texts.get(value);
      if (written === undefined) throw refusal(this, value);
      return Buffer.from(written);
    },
    decode(data) {
      const written = utf8(data);
      if (written === null || !values.has(written)) throw refusal(this, data);
      return values.get(written) as T;
    },
  };
}

/** `1` and `0`, or the two spellings given; nothing else is read. */
export function boolean(yes = "1", no = "0"): Codec<boolean> {
  return choice(`${yes || "nothing"} or ${no || "nothing"}`, new Map([[true, yes], [false, no]]));
}

/** A word that is present or absent: true is the word, false is absence. */
export function flag(word: string): Codec<boolean> {
  const inner = choice(`'${word}' or nothing`, new Map([[true, word], [false, ""]]), true);
  return {
    ...inner,
    encode(value) {
      if (value === false) throw new CodecError(inner.expected, "false, which is written by leaving the member out");
      return inner.encode(value);
    },
  };
}

/** One of the values given, which are strings or whole numbers. */
export function literal<const T extends string | number>(...values: readonly T[]): Codec<T> {
  return choice(`one of ${values.slice(0, 6).join(", ")}`, new Map(values.map((value) => [value, String(value)])));
}

/** Null is the empty string; every other value is what another codec writes, which is never empty. */
export function emptyAsNull<T>(inner: Codec<T>): Codec<T | null> {
  return {
    expected: `${inner.expected}, or nothing`,
    ...(inner.secret ? { secret: true } : {}),
    encode(value) {
      if (value === null) return Buffer.alloc(0);
      const written = inner.encode(value);
      if (written.length === 0) throw new CodecError(this.expected, "an empty value, which is read as null");
      return written;
    },
    decode: (data) => (data.length === 0 ? null : inner.decode(data)),
  };
}

/** Holds a token or a password; `reveal()` is the only way to it. Printing and JSON show `Secret(…)`. */
export class Secret<T> {
  readonly #hidden: T;

  constructor(value: T) {
    this.#hidden = value;
  }

  reveal(): T {
    return this.#hidden;
  }

  toString(): string {
    return "Secret(…)";
  }

  toJSON(): never {
    throw new UsageError("a Secret is not written as JSON. reveal() it where it must travel.");
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "Secret(…)";
  }
}

/** A value that does not show itself, stored as another codec writes it. */
export function secret<T>(inner: Codec<T>): Codec<Secret<T>> {
  return {
    expected: `a secret: ${inner.expected}`,
    secret: true,
    encode(value) {
      if (!(value instanceof Secret)) throw refusal(this, value);
      return hidden(this, () => inner.encode(value.reveal()));
    },
    decode(data) {
      return new Secret(hidden(this, () => inner.decode(data)));
    },
  };
}

function hidden<R>(codec: Codec<unknown>, work: () => R): R {
  try {
    return work();
  } catch {
    throw refusal(codec, null);
  }
}

export interface CompressionOptions {
  readonly level?: number;
  readonly minSize?: number;
  readonly maxSize?: number;
}

interface Form {
  recognises(data: Buffer): boolean;
  pack(plain: Buffer, level: number | undefined): Buffer;
  unpack(data: Buffer, limit: number): Buffer;
}

interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/** Return what a stream unpacks to. Throw if it is larger than the limit, incomplete, or followed by other bytes. */
function inflated(unpack: (data: Buffer, options: zlib.ZlibOptions) => unknown, data: Buffer, limit: number): Buffer {
  const { buffer, engine } = unpack(data, { maxOutputLength: limit, info: true }) as Inflated;
  if (engine.bytesWritten !== data.length) throw new Error("followed by other bytes");
  return buffer;
}

const FORMS: Readonly<Record<"zlib" | "gzip" | "zstd", Form>> = {
  zlib: {
    // RFC 1950: deflate with a window of 32 kB, a checksum of these two bytes, and no dictionary.
    recognises: (data) => data.length > 1 && data[0] === 0x78 && (data[1]! & 0x20) === 0 && data.readUInt16BE(0) % 31 === 0,
    pack: (plain, level) => zlib.deflateSync(plain, level === undefined ? {} : { level }),
    unpack: (data, limit) => inflated(zlib.inflateSync, data, limit),
  },
  gzip: {
    recognises: (data) => data.length > 2 && data[0] === 0x1f && data[1] === 0x8b && data[2] === 8,
    pack: (plain, level) => zlib.gzipSync(plain, { level: level ?? 9 }),
    unpack: (data, limit) => inflated(zlib.gunzipSync, data, limit),
  },
  zstd: {
    recognises: (data) => data.length > 3 && data.readUInt32BE(0) === 0x28b52ffd,
    pack: (plain, level) => zstd("zstdCompressSync")(plain, { params: { [zstdLevel()]: level ?? 3 } }),
    unpack: (data, limit) => zstd("zstdDecompressSync")(data, { maxOutputLength: limit }),
  },
};

function zstd(name: string): (data: Buffer, options: object) => Buffer {
  const found = (zlib as unknown as Record<string, unknown>)[name];
  if (typeof found !== "function") {
    throw new UnsupportedError("a value compressed with zstd", `Node ${process.versions.node} has no zstd. Use Node 22.15 or newer.`);
  }
  return found as (data: Buffer, options: object) => Buffer;
}

function zstdLevel(): number {
  return (zlib.constants as unknown as Record<string, number>)["ZSTD_c_compressionLevel"]!;
}

/**
 * Compression around another codec. Values under `minSize` bytes are stored as they are, and nothing larger than
 * `maxSize` is unpacked. The compressed bytes may differ from Python's; each reads those of the other.
 */
export function compressed<T>(form: "zlib" | "gzip" | "zstd", inner: Codec<T>, options: CompressionOptions = {}): Codec<T> {
  const { level, minSize = 64, maxSize = 64 * 1024 * 1024 } = options;
  const { recognises, pack, unpack } = FORMS[form];
  return {
    expected: `${inner.expected}, ${form}-compressed`,
    ...(inner.secret ? { secret: true } : {}),
    encode(value) {
      const plain = inner.encode(value);
      if (plain.length > maxSize) throw refusal(this, null, `larger than ${maxSize} bytes`);
      return plain.length < minSize && !recognises(plain) ? plain : pack(plain, level);
    },
    decode(data) {
      if (!recognises(data)) {
        if (minSize === 0) throw refusal(this, data);
        return inner.decode(data);
      }
      let plain: Buffer;
      try {
        plain = unpack(data, maxSize);
      } catch (error) {
        if (error instanceof UnsupportedError) throw error;
        throw refusal(this, data, error instanceof Error ? error.message : "");
      }
      return inner.decode(plain);
    },
  };
}
