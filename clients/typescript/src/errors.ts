/** The errors of this package. Each has fields, and a message with the problem and the remedy. */

/** Every error of this package. */
export class KeywrightError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A call that cannot be right, whatever is stored. */
export class UsageError extends KeywrightError {}

/** Something that a declaration has and this package does not support. */
export class UnsupportedError extends KeywrightError {
  constructor(readonly subject: string, readonly reason: string) {
    super(`${subject}: ${reason}`);
  }
}

/** A variable of a key name that is outside its alphabet. */
export class VariableError extends KeywrightError {
  constructor(readonly template: string, readonly variable: string, readonly expected: string, found: unknown) {
    super(`<${variable}> of ${template} must be ${expected}, found ${excerpt(found)}.`);
  }
}

/** A value that cannot be written as declared. */
export class ValueRefusedError extends KeywrightError {
  constructor(readonly template: string, readonly expected: string, readonly found: string) {
    super(`${template} holds ${expected}, found ${found}. Pass such a value.`);
  }
}

/** Stored bytes that are not as declared. */
export class StoredDataError extends KeywrightError {
  constructor(
    readonly key: string,
    readonly template: string,
    readonly expected: string,
    readonly found: string,
  ) {
    super(`${key} (${template}) should hold ${expected}, found ${found}. Run keywright audit to find all such keys.`);
  }
}

/** A relation that would take the partner of another. */
export class TakenError extends KeywrightError {
  constructor(readonly relation: string, readonly identity: unknown, readonly partner: unknown) {
    super(`${relation}: ${excerpt(identity)} is related to ${excerpt(partner)}. Use replace() to move it.`);
  }
}

/** Every attempt of a write lost against another writer. Nothing was written. */
export class ConflictError extends KeywrightError {
  constructor(readonly label: string, readonly attempts: number) {
    super(`${label}: other writers were faster ${attempts} times. Try again.`);
  }
}

/** A name that holds another Redis type. */
export class WrongTypeError extends KeywrightError {
  constructor(readonly key: string, readonly expected: string) {
    super(`${key} should be a ${expected}, and is another Redis type. Nothing was written.`);
  }
}

/** An error reply of the server. */
export class ReplyError extends KeywrightError {}

/** What a codec raises; the key adds its name. */
export class CodecError extends KeywrightError {
  constructor(readonly expected: string, readonly found: string) {
    super(`expected ${expected}, found ${found}`);
  }
}

const LONGEST = 80;

/** Return the beginning of a value for a message. */
export function excerpt(found: unknown): string {
  if (found instanceof Uint8Array) return shortened(JSON.stringify(Buffer.from(found.subarray(0, LONGEST)).toString("latin1")));
  if (typeof found === "string") return shortened(JSON.stringify(found.slice(0, LONGEST)));
  if (typeof found === "bigint") return `${shortened(found.toString())}n`;
  if (found === null || found === undefined || typeof found === "number" || typeof found === "boolean") return String(found);
  return Array.isArray(found) ? "an array" : `a value of type ${typeof found}`;
}

function shortened(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
