/** Alphabets: the values of a key variable, and their one text each. `render` and `read` are exact inverses. */

import { CodecError, excerpt } from "./errors.js";
import { Moment, parseInstant } from "./times.js";

export interface Alphabet<T> {
  /** The valid values, in words that follow "must be". */
  readonly expected: string;
  /** Every text matches this regular expression in full. */
  readonly pattern: RegExp;
  /** Return the text of a value. Throw if it is outside the alphabet. */
  render(value: T): string;
  /** Return the value of a text. Throw unless `render` gives that text for it. */
  read(text: string): T;
}

/** The texts of a variable in an optional segment, which may be left out. */
export interface OptionalAlphabet<T> extends Alphabet<T | null> {
  readonly optional: true;
  readonly inner: Alphabet<T>;
}

function refused(expected: string, found: unknown): CodecError {
  return new CodecError(expected, excerpt(found));
}

/** Text that is written as it is. `allowed` decides where the pattern alone does not. */
export function verbatim(pattern: RegExp, expected: string, allowed: (text: string) => boolean = () => true): Alphabet<string> {
  function checked(text: string): string {
    if (typeof text !== "string" || !text.isWellFormed() || !pattern.test(text) || !allowed(text)) throw refused(expected, text);
    return text;
  }
  return { expected, pattern, render: checked, read: checked };
}

/** One of several texts, of which each is written as it is. */
export function oneOf<const T extends string>(values: readonly T[], pattern: RegExp, expected: string): Alphabet<T> {
  const known = new Set<string>(values);
  function checked(text: string): T {
    if (!known.has(text)) throw refused(expected, text);
    return text as T;
  }
  return { expected, pattern, render: checked, read: checked };
}

/** Whole numbers from `low` to `high` in canonical decimal. */
export function integers(low: bigint, high: bigint, pattern: RegExp, expected: string): Alphabet<bigint> {
  return {
    expected,
    pattern,
    render(value) {
      if (typeof value !== "bigint" || value < low || value > high) throw refused(expected, value);
      return value.toString();
    },
    read(text) {
      if (!pattern.test(text)) throw refused(expected, text);
      const value = BigInt(text);
      if (value < low || value > high) throw refused(expected, text);
      return value;
    },
  };
}

/** Return whether a text is canonical decimal below 2**64, as a snowflake is. */
export function belowTwoTo64(text: string): boolean {
  return text.length < 20 || (text.length === 20 && text <= "18446744073709551615");
}

// Printable ASCII without % : { and }, and the blocks of letters from Latin-1 to Hangul without spaces.
const KEPT = /^[!-$&-9;-z|~\xc0-\u167f\u1681-\u1fff\u3040-\ud7ff]$/u;

/** Any text, with what cannot stand in a name as `%XX`. */
export function escapedText(pattern: RegExp, expected: string, allowEmpty = false): Alphabet<string> {
  return {
    expected,
    pattern,
    render(value) {
      if (typeof value !== "string" || !value.isWellFormed() || (value === "" && !allowEmpty)) throw refused(expected, value);
      let text = "";
      for (const character of value) text += KEPT.test(character) ? character : percent(character);
      return text;
    },
    read(text) {
      if (!pattern.test(text)) throw refused(expected, text);
      return text.replace(/(?:%[0-9A-F]{2})+/gu, (found) => Buffer.from(found.replaceAll("%", ""), "hex").toString("utf8"));
    },
  };
}

function percent(character: string): string {
  let text = "";
  for (const byte of Buffer.from(character)) text += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return text;
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** A date as text: `2024-02-29`, with the separator of the alphabet. In values it is `YYYY-MM-DD` always. */
export function days(separator: string, pattern: RegExp, expected: string): Alphabet<string> {
  return {
    expected,
    pattern,
    render(value) {
      if (typeof value !== "string" || !/^\d{4}-\d{2}-\d{2}$/u.test(value) || !isDay(value)) throw refused(expected, value);
      return value.replaceAll("-", separator);
    },
    read(text) {
      const digits = separator === "" ? text : text.replaceAll(separator, "");
      const value = `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`;
      if (!pattern.test(text) || !isDay(value)) throw refused(expected, text);
      return value;
    },
  };
}

function isDay(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.split("-").map(Number);
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= (DAYS[month - 1] ?? 0) + Number(leap);
}

/** A time in UTC: `2024-02-29T12:30:00Z`, with six decimals if it has a fraction. */
export function instants(pattern: RegExp, expected: string): Alphabet<Date> {
  const render = (value: Date): string => `${Moment.of(value, expected).iso(true)}Z`;
  return {
    expected,
    pattern,
    render,
    read(text) {
      const value = pattern.test(text) ? parseInstant(text) : null;
      if (value === null || render(value) !== text) throw refused(expected, text);
      return value;
    },
  };
}

/** A decimal number as text, whose digits are kept: `1.5` and `1.50` are two values. */
export function decimals(pattern: RegExp, expected: string): Alphabet<string> {
  return verbatim(pattern, expected, (text) => !/^-0(?:\.0+)?$/u.test(text) && text.replace("-", "").split(".")[0]!.length <= 64);
}

/** A boolean as one of two words. */
export function truth(yes: string, no: string, pattern: RegExp, expected: string): Alphabet<boolean> {
  return {
    expected,
    pattern,
    render(value) {
      if (typeof value !== "boolean") throw refused(expected, value);
      return value ? yes : no;
    },
    read(text) {
      if (text !== yes && text !== no) throw refused(expected, text);
      return text === yes;
    },
  };
}

/** The values of an alphabet except those of certain texts. */
export function except<T>(base: Alphabet<T>, words: readonly string[], others: readonly RegExp[], pattern: RegExp, expected: string): Alphabet<T> {
  const excluded = new Set(words);
  function checked(text: string): string {
    if (excluded.has(text) || others.some((other) => other.test(text))) throw refused(expected, text);
    return text;
  }
  return { expected, pattern, render: (value) => checked(base.render(value)), read: (text) => base.read(checked(text)) };
}

/** A variable of an optional segment: null leaves the segment out. */
export function optional<T>(inner: Alphabet<T>): OptionalAlphabet<T> {
  return {
    optional: true,
    inner,
    expected: inner.expected,
    pattern: inner.pattern,
    render: (value) => {
      if (value === null) throw refused(inner.expected, value);
      return inner.render(value);
    },
    read: (text) => inner.read(text),
  };
}

/** Return a condition on text: at most so many bytes of UTF-8. */
export function atMostBytes(most: number): (text: string) => boolean {
  return (text) => Buffer.byteLength(text) <= most;
}
