/** Moments and durations with the microseconds that Python and RFC 3339 have, and a Date has not. */

import { type Codec, decimalInteger, refusal } from "./codecs.js";
import { CodecError, excerpt } from "./errors.js";

const EARLIEST_MS = -62_135_596_800_000; // 0001-01-01
const LATEST_MS = 253_402_300_799_999; // 9999-12-31
const RFC3339 = /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/u;
const NUMBER = /^-?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?$/u;

/** A Date with the microseconds below its millisecond. What is read is a Moment; any Date may be written. */
export class Moment extends Date {
  constructor(milliseconds: number, /** From 0 to 999. */ readonly microseconds: number = 0) {
    super(milliseconds);
  }

  static of(value: Date, expected = "a time"): Moment {
    if (!(value instanceof Date) || !(value.getTime() >= EARLIEST_MS && value.getTime() <= LATEST_MS)) {
      throw new CodecError(expected, excerpt(value));
    }
    return value instanceof Moment ? value : new Moment(value.getTime());
  }

  static fromMicroseconds(microseconds: bigint, expected = "a time"): Moment {
    const rest = ((microseconds % 1000n) + 1000n) % 1000n;
    return Moment.of(new Moment(Number((microseconds - rest) / 1000n), Number(rest)), expected);
  }

  /** The microseconds since 1970. */
  get epochMicroseconds(): bigint {
    return BigInt(this.getTime()) * 1000n + BigInt(this.microseconds);
  }

  /** Return the time in UTC without its zone: seconds, and six decimals if there is a fraction. */
  iso(six = true): string {
    const text = this.toISOString();
    const fraction = text.slice(20, 23) + String(this.microseconds).padStart(3, "0");
    return text.slice(0, 19) + (six && fraction !== "000000" ? `.${fraction}` : "");
  }
}

/** Return the moment of an RFC 3339 text, or null. What is finer than a microsecond is cut. */
export function parseInstant(text: string): Moment | null {
  const found = RFC3339.exec(text);
  if (found === null) return null;
  const [, day = "", time = "", fraction = "", zone = ""] = found;
  const whole = Date.parse(`${day}T${time}Z`);
  // Date.parse takes the 30th of February for a day of March.
  if (Number.isNaN(whole) || new Date(whole).toISOString().slice(0, 10) !== day) return null;
  const microseconds = BigInt(fraction.slice(0, 6).padEnd(6, "0"));
  const offset = /^[Zz]$/u.test(zone) ? 0 : (zone.startsWith("-") ? -1 : 1) * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4)));
  try {
    return Moment.fromMicroseconds(BigInt(whole - offset * 60_000) * 1000n + microseconds);
  } catch {
    return null;
  }
}

/** RFC 3339 in UTC as `2019-08-08T17:30:00+00:00`, with microseconds only where there are some. */
export const rfc3339: Codec<Date> = {
  expected: "an RFC 3339 time",
  encode: (value) => Buffer.from(`${Moment.of(value, "an RFC 3339 time").iso()}+00:00`),
  decode(data) {
    const found = parseInstant(data.toString("latin1"));
    if (found === null) throw refusal(this, data);
    return found;
  },
};

function epoch(expected: string, unit: bigint): Codec<Date> {
  const integer = decimalInteger(-(2n ** 63n), 2n ** 63n - 1n, expected);
  return {
    expected,
    encode: (value) => Buffer.from(floored(Moment.of(value, expected).epochMicroseconds, unit).toString()),
    decode: (data) => Moment.fromMicroseconds(integer.decode(data) * unit, expected),
  };
}

function floored(value: bigint, unit: bigint): bigint {
  const quotient = value / unit;
  return value < 0n && value % unit !== 0n ? quotient - 1n : quotient;
}

/** Milliseconds since 1970 as a decimal integer; a finer moment is floored. */
export const epochMs = epoch("a time in milliseconds since 1970", 1000n);

/** Seconds since 1970 as a decimal integer; a finer moment is floored. */
export const epochSeconds = epoch("a time in seconds since 1970", 1_000_000n);

/** Seconds since 1970 with a fraction, as `1700000000.123`. */
export const epochFloat: Codec<Date> = {
  expected: "a time in seconds since 1970, with a fraction",
  encode(value) {
    const written = inUnits(Moment.of(value, this.expected).epochMicroseconds, 1_000_000n);
    return Buffer.from(written.includes(".") ? written : `${written}.0`);
  },
  decode(data) {
    return Moment.fromMicroseconds(span(this, data, 6), this.expected);
  },
};

/** A length of time, exact to the microsecond. */
export class Duration {
  constructor(readonly microseconds: bigint) {}

  static seconds(seconds: number): Duration {
    return new Duration(BigInt(Math.round(seconds * 1e6)));
  }

  static milliseconds(milliseconds: number): Duration {
    return new Duration(BigInt(Math.round(milliseconds * 1e3)));
  }

  get inMilliseconds(): number {
    return Number(this.microseconds) / 1000;
  }

  get inSeconds(): number {
    return Number(this.microseconds) / 1e6;
  }
}

const LONGEST = 86_400_000_000n * 1_000_000_000n; // as Python's timedelta

/** A number of seconds or milliseconds, with a fraction only if there is one: `90`, `0.25`. */
export function duration(unit: "s" | "ms"): Codec<Duration> {
  return {
    expected: `a duration in ${unit === "s" ? "seconds" : "milliseconds"}`,
    encode(value) {
      if (!(value instanceof Duration)) throw refusal(this, value);
      return Buffer.from(inUnits(value.microseconds, unit === "s" ? 1_000_000n : 1000n));
    },
    decode(data) {
      const microseconds = span(this, data, unit === "s" ? 6 : 3);
      if (microseconds >= LONGEST || microseconds <= -LONGEST) throw refusal(this, data);
      return new Duration(microseconds);
    },
  };
}

function inUnits(microseconds: bigint, unit: bigint): string {
  const size = microseconds < 0n ? -microseconds : microseconds;
  const fraction = (size % unit).toString().padStart(unit.toString().length - 1, "0").replace(/0+$/u, "");
  return `${microseconds < 0n ? "-" : ""}${size / unit}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Return a decimal number times 10 ** digits, rounded half to even. */
function span(codec: Codec<unknown>, data: Buffer, digits: number): bigint {
  const text = data.toString("latin1");
  if (!NUMBER.test(text)) throw refusal(codec, data);
  const [mantissa = "", power = "0"] = text.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const shift = digits + Number(power) - fraction.length;
  const number = BigInt(whole + fraction);
  if (number !== 0n && shift > 40) throw refusal(codec, data);
  const size = shift >= 0 ? number * 10n ** BigInt(Math.min(shift, 40)) : halved(number, 10n ** BigInt(-shift));
  return text.startsWith("-") ? -size : size;
}

function halved(number: bigint, by: bigint): bigint {
  const quotient = number / by;
  const twice = (number % by) * 2n;
  return twice > by || (twice === by && quotient % 2n === 1n) ? quotient + 1n : quotient;
}
