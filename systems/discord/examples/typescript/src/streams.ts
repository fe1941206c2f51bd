// Written by `keywright generate typescript spectacles-streams`: do not edit.

import * as kw from "keywright";

/** Events between the services of a bot: a stream each, read by consumer groups. */
export const spectaclesStreams = kw.keyspace("spectacles-streams");

const name = kw.verbatim(/^(?:[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u, "1 to 200 bytes of text without colons, braces and control characters", kw.atMostBytes(200));
const groupName = kw.verbatim(/^(?:[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+|[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+:[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u, "a group, or a group and a subgroup with a colon between them");

/** A published message. Other clients may add fields, such as Rust's `timeout_at`. */
export interface Posted {
  /** The encoded body. */
  readonly data: Uint8Array;
  /** The group that a replayed dead letter is for. Other groups skip the entry. */
  readonly only: string;
}

/** A dead letter. */
export interface GivenUp {
  /** The encoded body. */
  readonly data: Uint8Array;
  /** The error of the last attempt, or why there was none. */
  readonly reason: string;
  /** The number of deliveries. */
  readonly attempts: bigint;
  /** The id of the entry in the stream of the event. */
  readonly id: string;
  /** The time at which it became a dead letter. */
  readonly at: Date;
}

/**
 * The messages of an event, until every group has settled them and the retention is over.
 *
 * Its names are `<event>`.
 */
export const EventStream = kw.stream(
  spectaclesStreams,
  kw.template(
    "<event>",
    [{ variable: "event" }],
    /^([ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u,
    { event: name },
  ),
  kw.shape<Posted>([kw.maybe("data", kw.bytes, { default: "" }), kw.maybe("only", kw.text, { default: "" })]),
  [],
);

/**
 * The dead letters of an event in one group. They stay until they are replayed or dropped.
 *
 * Its names are `{<event>}:<group>:dead`.
 */
export const DeadLetters = kw.stream(
  spectaclesStreams,
  kw.template(
    "{<event>}:<group>:dead",
    ["{", { variable: "event" }, "}:", { variable: "group" }, ":dead"],
    /^\{([ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)\}:((?:[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+|[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+:[ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)):dead$/u,
    { event: name, group: groupName },
  ),
  kw.shape<GivenUp>([kw.required("data", kw.bytes), kw.required("reason", kw.text), kw.required("attempts", kw.int64), kw.required("id", kw.text), kw.required("at", kw.rfc3339)]),
  [],
);

/**
 * The lease of the process that consumes under this name.
 *
 * Its names are `<group>:consumer:<consumer>`.
 */
export const ProcessSlot = kw.lease(
  spectaclesStreams,
  kw.template(
    "<group>:consumer:<consumer>",
    [{ variable: "group" }, ":consumer:", { variable: "consumer" }],
    /^([ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+):consumer:([ -9;-z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u,
    { group: name, consumer: name },
  ),
);

/** Every kind of key, by name. */
export const keys = {
  EventStream,
  DeadLetters,
  ProcessSlot,
} as const;
