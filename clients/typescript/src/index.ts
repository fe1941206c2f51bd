/** The runtime of modules that `keywright generate typescript` writes. */

export type { Adapter, Reply, Word } from "./adapter.js";
export * from "./alphabets.js";
export { Call } from "./calls.js";
export { type Codec, type CompressionOptions, Secret, boolean, bytes, compressed, decimalInteger, emptyAsNull, flag, float, id, int64, literal, secret, text, uint64 } from "./codecs.js";
export { type Check, type Outcome, absent, commit, equals, exists, hasMember, owned } from "./commit.js";
export { Database, type DatabaseOptions, database } from "./database.js";
export * from "./errors.js";
export type { Expiry, WriteExpiry } from "./expiry.js";
export * from "./hashes.js";
export { json } from "./json.js";
export * from "./keys.js";
export * from "./lists.js";
export * from "./relations.js";
export * from "./sets.js";
export type { Integer, Json, Shape, Shapes } from "./shapes.js";
export * from "./strings.js";
export { type Arguments, type Part, Template, type Values, type Variables, template } from "./template.js";
export { Duration, Moment, duration, epochFloat, epochMs, epochSeconds, rfc3339 } from "./times.js";
