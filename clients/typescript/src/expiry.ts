/** When keys expire, and the commands that give them their expiry. */

import type { Word } from "./adapter.js";
import { UsageError } from "./errors.js";
import { Moment } from "./times.js";

/** The declared expiry of a key. */
export interface Expiry {
  readonly ttlMs?: number;
  /** The share by which the time is spread either way. */
  readonly jitter?: number;
  /** What the time counts from; after the last use, reads renew it. */
  readonly since?: "first write" | "last write" | "last use";
  /** A fixed moment, in RFC 3339. */
  readonly at?: string;
  /** The name of the function that computes it in Python; every write here must be passed its expiry. */
  readonly computed?: string;
  /** Only some keys expire, as their writers decide. */
  readonly optional?: boolean;
}

/** The expiry of one write, instead of the declared one. */
export type WriteExpiry = { readonly ms: number } | { readonly at: Date } | "none";

/** How a command treats the expiry of its key. */
export type Effect = "none" | "refresh" | "refresh unless computed" | "slide" | { readonly write: WriteExpiry };

/** A command that gives an expiry. `EXPIRE_ONCE` is PEXPIRE … NX, which needs Redis 7. */
export type ExpiryCommand = { readonly verb: "PEXPIRE" | "PEXPIREAT" | "EXPIRE_ONCE" | "PERSIST"; readonly operands: readonly Word[] };

/** Return the expiry that a command gives its key, as the option of SET: `["PX", ms]`; empty for none. */
export function expiryOption(expiry: Expiry | undefined, effect: Effect, source: string): readonly Word[] {
  if (typeof effect === "object") {
    if (effect.write === "none") return [];
    return "ms" in effect.write ? ["PX", positive(effect.write.ms)] : ["PXAT", Moment.of(effect.write.at).getTime()];
  }
  if (expiry === undefined || effect === "none" || expiry.optional) return [];
  if (expiry.computed !== undefined) {
    if (effect !== "refresh") return [];
    throw new UsageError(`${source} expires at a time that ${expiry.computed} computes in Python. Pass this write its expiry: { expiry: { at } }.`);
  }
  if (effect === "slide" && expiry.since !== "last use") return [];
  return expiry.ttlMs === undefined ? ["PXAT", new Date(expiry.at!).getTime()] : ["PX", drawn(expiry.ttlMs, expiry.jitter ?? 0)];
}

/** Return the command that follows a write, or a read that renews, in its transaction. */
export function expiryCommand(expiry: Expiry | undefined, effect: Effect, source: string): ExpiryCommand | null {
  const [option, when] = expiryOption(expiry, effect, source);
  if (option === undefined) return null;
  if (option === "PXAT") return { verb: "PEXPIREAT", operands: [when!] };
  const once = typeof effect !== "object" && expiry?.since === "first write";
  return { verb: once ? "EXPIRE_ONCE" : "PEXPIRE", operands: [when!] };
}

function drawn(ttlMs: number, jitter: number): number {
  return Math.max(1, Math.round(ttlMs * (1 + jitter * (2 * Math.random() - 1))));
}

export function positive(milliseconds: number): number {
  if (!Number.isFinite(milliseconds) || Math.round(milliseconds) < 1) {
    throw new UsageError(`a time must be at least 1 ms, got ${milliseconds}.`);
  }
  return Math.round(milliseconds);
}
