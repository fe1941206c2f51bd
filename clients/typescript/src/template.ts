/** Names of keys: literal text and variables. Writing and reading a name are exact inverses. */

import type { Alphabet, OptionalAlphabet } from "./alphabets.js";
import { utf8 } from "./codecs.js";
import { CodecError, UsageError, VariableError } from "./errors.js";

/** The variables of a template, each with its alphabet. */
export type Variables = Readonly<Record<string, Alphabet<any>>>;

/** The values of variables by name. Those of optional segments may be null. */
export type Values<V> = { readonly [Name in keyof V]: V[Name] extends { read(text: string): infer T } ? T : never };

/** What `key()` takes: nothing where the template has no variables. */
export type Arguments<V> = keyof V extends never ? [] : [values: Values<V>];

/** A name is literal text, a variable, or an optional segment of both. */
export type Part = string | { readonly variable: string } | { readonly segment: readonly (string | { readonly variable: string })[] };

export class Template<V> {
  /** The variables in the order in which the pattern has them. */
  readonly variables: readonly string[];

  constructor(
    readonly source: string,
    readonly parts: readonly Part[],
    readonly pattern: RegExp,
    readonly alphabets: V,
  ) {
    this.variables = parts.flatMap((part) => {
      if (typeof part === "string") return [];
      return "variable" in part ? [part.variable] : part.segment.flatMap((each) => (typeof each === "string" ? [] : [each.variable]));
    });
  }

  /** Return the name for values. Throw VariableError if one is outside its alphabet. */
  render(values: Values<V>): Buffer {
    const given = values as Readonly<Record<string, unknown>>;
    const unknown = Object.keys(given).find((name) => !this.variables.includes(name));
    if (unknown !== undefined) throw new UsageError(`${this.source} has no variable <${unknown}>. It has ${this.variables.join(", ") || "none"}.`);
    let name = "";
    for (const part of this.parts) {
      if (typeof part === "string") name += part;
      else if ("variable" in part) name += this.text(part.variable, given[part.variable]);
      else name += this.segment(part.segment, given);
    }
    return Buffer.from(name);
  }

  /** Return the values of a name, or null if it is not one of this template. */
  parse(name: Uint8Array | string): Values<V> | null {
    const source = typeof name === "string" ? name : utf8(name);
    const found = source === null ? null : this.pattern.exec(source);
    if (found === null) return null;
    const values: Record<string, unknown> = {};
    for (const [place, variable] of this.variables.entries()) {
      const text = found[place + 1];
      try {
        values[variable] = text === undefined ? null : this.alphabet(variable).read(text);
      } catch (error) {
        if (error instanceof CodecError) return null;
        throw error;
      }
    }
    return values as Values<V>;
  }

  private alphabet(variable: string): Alphabet<unknown> {
    return (this.alphabets as Readonly<Record<string, Alphabet<unknown>>>)[variable]!;
  }

  private text(variable: string, value: unknown): string {
    const alphabet = this.alphabet(variable);
    try {
      return alphabet.render(value);
    } catch (error) {
      if (error instanceof CodecError) throw new VariableError(this.source, variable, alphabet.expected, value);
      throw error;
    }
  }

  private segment(parts: readonly (string | { readonly variable: string })[], values: Readonly<Record<string, unknown>>): string {
    const names = parts.flatMap((part) => (typeof part === "string" ? [] : [part.variable]));
    const absent = names.filter((name) => values[name] === null || values[name] === undefined);
    if (absent.length === names.length) return "";
    if (absent.length > 0) {
      throw new VariableError(this.source, absent[0]!, "given together with the other variables of its optional segment", null);
    }
    return parts.map((part) => (typeof part === "string" ? part : this.text(part.variable, values[part.variable]))).join("");
  }
}

/** Declare a template. `pattern` has a group for each variable, in the order of the parts. */
export function template<V extends Readonly<Record<string, Alphabet<any> | OptionalAlphabet<any>>>>(
  source: string,
  parts: readonly Part[],
  pattern: RegExp,
  alphabets: V,
): Template<V> {
  return new Template(source, parts, pattern, alphabets);
}
