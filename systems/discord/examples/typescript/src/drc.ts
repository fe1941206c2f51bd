// Written by `keywright generate typescript drc`: do not edit.

import * as kw from "keywright";

/** The Discord Redis Cache: what a bot sees of Discord, normalised; nested objects are ids. */
export const drc = kw.keyspace("drc", { prefix: "keywright", version: "v1json" });

/** Indexes that find the keys of a guild again; outside the names of the specification. */
export const drcPrivate = kw.keyspace("drc-private", { prefix: "keywright", version: "v1json-private" });

const snowflakeText = kw.verbatim(/^(?:0|[1-9][0-9]{0,19})$/u, "a snowflake as text (canonical decimal, below 2**64)", kw.belowTwoTo64);
const rest = kw.verbatim(/^(?:[ -z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u, "non-empty text without braces and control characters");
const unsigned64 = kw.integers(0n, 2n ** 64n - 1n, /^(?:0|[1-9][0-9]{0,19})$/u, "an unsigned 64-bit integer");
const signed64 = kw.integers(-(2n ** 63n), 2n ** 63n - 1n, /^(?:0|-?[1-9][0-9]{0,18})$/u, "a signed 64-bit integer");

/** The session that fills a cache. */
export interface FilledBy {
  /** The bot of the session, as the names of its gateway keys have it. */
  readonly bot: string;
  /** The session id of READY. */
  readonly session: string;
}
const definitions: kw.Shapes = {
  FilledBy: { type: "object", properties: { bot: { type: "string" }, session: { type: "string" } }, required: ["bot", "session"] },
};

/**
 * The created commands of an application, by command id. No gateway event carries them.
 *
 * Its names are `keywright:v1json:commands:<application>`.
 */
export const Commands = kw.map(
  drc,
  kw.template(
    "commands:<application>",
    ["commands:", { variable: "application" }],
    /^commands:((?:0|[1-9][0-9]{0,19}))$/u,
    { application: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * An interaction. Its `token` is a credential for the 15 minutes that the key lives.
 *
 * Its names are `keywright:v1json:interactions:<interaction>`.
 *
 * It expires: 15 minutes after the last write.
 */
export const Interaction = kw.value(
  drc,
  kw.template(
    "interactions:<interaction>",
    ["interactions:", { variable: "interaction" }],
    /^interactions:((?:0|[1-9][0-9]{0,19}))$/u,
    { interaction: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
  { expiry: { ttlMs: 900000 }, hides: true },
);

/**
 * An application; its owner, bot and team are user ids.
 *
 * Its names are `keywright:v1json:applications:<application>`.
 */
export const Application = kw.value(
  drc,
  kw.template(
    "applications:<application>",
    ["applications:", { variable: "application" }],
    /^applications:((?:0|[1-9][0-9]{0,19}))$/u,
    { application: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The auto moderation rules of a guild, by rule id.
 *
 * Its names are `keywright:v1json:automod-rules:<guild>`.
 */
export const AutomodRules = kw.map(
  drc,
  kw.template(
    "automod-rules:<guild>",
    ["automod-rules:", { variable: "guild" }],
    /^automod-rules:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The channels of a guild, by channel id. Threads have keys of their own.
 *
 * Its names are `keywright:v1json:channels:<guild>`.
 */
export const Channels = kw.map(
  drc,
  kw.template(
    "channels:<guild>",
    ["channels:", { variable: "guild" }],
    /^channels:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * A message; author, mentions, referenced message and thread are ids.
 *
 * Its names are `keywright:v1json:messages:<message>`.
 *
 * It expires: 10 minutes after the last write.
 */
export const Message = kw.value(
  drc,
  kw.template(
    "messages:<message>",
    ["messages:", { variable: "message" }],
    /^messages:((?:0|[1-9][0-9]{0,19}))$/u,
    { message: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
  { expiry: { ttlMs: 600000 } },
);

/**
 * A thread.
 *
 * Its names are `keywright:v1json:threads:<thread>`.
 */
export const Thread = kw.value(
  drc,
  kw.template(
    "threads:<thread>",
    ["threads:", { variable: "thread" }],
    /^threads:((?:0|[1-9][0-9]{0,19}))$/u,
    { thread: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The known members of a thread, by user id.
 *
 * Its names are `keywright:v1json:thread-members:<thread>`.
 */
export const ThreadMembers = kw.map(
  drc,
  kw.template(
    "thread-members:<thread>",
    ["thread-members:", { variable: "thread" }],
    /^thread-members:((?:0|[1-9][0-9]{0,19}))$/u,
    { thread: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The emojis that a message was reacted to with: a custom emoji's id, else its characters.
 *
 * Its names are `keywright:v1json:reactions:<message>`.
 *
 * It expires: 10 minutes after the last write.
 */
export const Reactions = kw.set(
  drc,
  kw.template(
    "reactions:<message>",
    ["reactions:", { variable: "message" }],
    /^reactions:((?:0|[1-9][0-9]{0,19}))$/u,
    { message: snowflakeText },
  ),
  kw.text,
  { expiry: { ttlMs: 600000 } },
);

/**
 * The users seen to react with one emoji.
 *
 * Its names are `keywright:v1json:reactions:<message>:<emoji>`.
 *
 * It expires: 10 minutes after the last write.
 */
export const ReactionUsers = kw.set(
  drc,
  kw.template(
    "reactions:<message>:<emoji>",
    ["reactions:", { variable: "message" }, ":", { variable: "emoji" }],
    /^reactions:((?:0|[1-9][0-9]{0,19})):([ -z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u,
    { message: snowflakeText, emoji: rest },
  ),
  kw.id(snowflakeText),
  { expiry: { ttlMs: 600000 } },
);

/**
 * The custom emojis of a guild, by emoji id.
 *
 * Its names are `keywright:v1json:emojis:<guild>`.
 */
export const Emojis = kw.map(
  drc,
  kw.template(
    "emojis:<guild>",
    ["emojis:", { variable: "guild" }],
    /^emojis:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The guilds that the bot is a member of.
 *
 * Its names are `keywright:v1json:guilds`.
 */
export const Guilds = kw.set(
  drc,
  kw.template("guilds", ["guilds"], /^guilds$/u, {}),
  kw.id(snowflakeText),
);

/**
 * A guild without its parts that have keys of their own.
 *
 * Its names are `keywright:v1json:guilds:<guild>`.
 */
export const Guild = kw.value(
  drc,
  kw.template(
    "guilds:<guild>",
    ["guilds:", { variable: "guild" }],
    /^guilds:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * A guild's widget, whose members Discord makes anonymous. No gateway event carries it.
 *
 * Its names are `keywright:v1json:widget:<guild>`.
 */
export const Widget = kw.value(
  drc,
  kw.template(
    "widget:<guild>",
    ["widget:", { variable: "guild" }],
    /^widget:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The known members of a guild.
 *
 * Its names are `keywright:v1json:members:<guild>`.
 */
export const Members = kw.set(
  drc,
  kw.template(
    "members:<guild>",
    ["members:", { variable: "guild" }],
    /^members:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
);

/**
 * A member of a guild, without its user.
 *
 * Its names are `keywright:v1json:members:<guild>:<user>`.
 */
export const Member = kw.value(
  drc,
  kw.template(
    "members:<guild>:<user>",
    ["members:", { variable: "guild" }, ":", { variable: "user" }],
    /^members:((?:0|[1-9][0-9]{0,19})):((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText, user: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The integrations of a guild, by integration id.
 *
 * Its names are `keywright:v1json:integrations:<guild>`.
 */
export const Integrations = kw.map(
  drc,
  kw.template(
    "integrations:<guild>",
    ["integrations:", { variable: "guild" }],
    /^integrations:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * A guild's welcome screen.
 *
 * Its names are `keywright:v1json:welcome-screen:<guild>`.
 */
export const WelcomeScreen = kw.value(
  drc,
  kw.template(
    "welcome-screen:<guild>",
    ["welcome-screen:", { variable: "guild" }],
    /^welcome-screen:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The scheduled events of a guild, by event id.
 *
 * Its names are `keywright:v1json:scheduled-events:<guild>`.
 */
export const ScheduledEvents = kw.map(
  drc,
  kw.template(
    "scheduled-events:<guild>",
    ["scheduled-events:", { variable: "guild" }],
    /^scheduled-events:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The roles of a guild, by role id.
 *
 * Its names are `keywright:v1json:roles:<guild>`.
 */
export const Roles = kw.map(
  drc,
  kw.template(
    "roles:<guild>",
    ["roles:", { variable: "guild" }],
    /^roles:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The templates of a guild, by code. No gateway event carries them.
 *
 * Its names are `keywright:v1json:templates:<guild>`.
 */
export const Templates = kw.map(
  drc,
  kw.template(
    "templates:<guild>",
    ["templates:", { variable: "guild" }],
    /^templates:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.text,
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * An invite; inviter and target are user ids. It expires after its `max_age`, where it has one.
 *
 * Its names are `keywright:v1json:invites:<code>`.
 *
 * It expires: `max_age` seconds after it was received, if the invite has one; Discord sends no event
 * when it ends..
 */
export const Invite = kw.value(
  drc,
  kw.template(
    "invites:<code>",
    ["invites:", { variable: "code" }],
    /^invites:([ -z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u,
    { code: rest },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
  { expiry: { computed: "end_of_invite" } },
);

/**
 * The stage instance of a stage channel.
 *
 * Its names are `keywright:v1json:stage-instances:<channel>`.
 */
export const StageInstance = kw.value(
  drc,
  kw.template(
    "stage-instances:<channel>",
    ["stage-instances:", { variable: "channel" }],
    /^stage-instances:((?:0|[1-9][0-9]{0,19}))$/u,
    { channel: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The custom stickers of a guild, by sticker id.
 *
 * Its names are `keywright:v1json:stickers:<guild>`.
 */
export const Stickers = kw.map(
  drc,
  kw.template(
    "stickers:<guild>",
    ["stickers:", { variable: "guild" }],
    /^stickers:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * A user.
 *
 * Its names are `keywright:v1json:users:<user>`.
 */
export const User = kw.value(
  drc,
  kw.template(
    "users:<user>",
    ["users:", { variable: "user" }],
    /^users:((?:0|[1-9][0-9]{0,19}))$/u,
    { user: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The voice states of a guild, by user id.
 *
 * Its names are `keywright:v1json:voice-states:<guild>`.
 */
export const VoiceStates = kw.map(
  drc,
  kw.template(
    "voice-states:<guild>",
    ["voice-states:", { variable: "guild" }],
    /^voice-states:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * The presence of a user in a guild; none means offline.
 *
 * Its names are `keywright:v1json:presence:<guild>:<user>`.
 */
export const Presence = kw.value(
  drc,
  kw.template(
    "presence:<guild>:<user>",
    ["presence:", { variable: "guild" }, ":", { variable: "user" }],
    /^presence:((?:0|[1-9][0-9]{0,19})):((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText, user: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
);

/**
 * A webhook, whose `token` is a secret of the bot's. No gateway event carries it.
 *
 * Its names are `keywright:v1json:webhooks:<webhook>`.
 */
export const Webhook = kw.value(
  drc,
  kw.template(
    "webhooks:<webhook>",
    ["webhooks:", { variable: "webhook" }],
    /^webhooks:((?:0|[1-9][0-9]{0,19}))$/u,
    { webhook: snowflakeText },
  ),
  kw.json<{ readonly [name: string]: kw.Json }>({ type: "object", additionalProperties: {} }),
  { hides: true },
);

/**
 * The session that fills the cache as this shard. The gateway fills a cache without it again.
 *
 * Its names are `keywright:v1json-private:session:<shards>:<shard>`.
 */
export const CacheSession = kw.value(
  drcPrivate,
  kw.template(
    "session:<shards>:<shard>",
    ["session:", { variable: "shards" }, ":", { variable: "shard" }],
    /^session:((?:0|[1-9][0-9]{0,19})):((?:0|[1-9][0-9]{0,19}))$/u,
    { shards: unsigned64, shard: unsigned64 },
  ),
  kw.json<FilledBy>({ $ref: "#/$defs/FilledBy" }, definitions),
);

/**
 * The users of super reactions with one emoji: 1, or 2 for those who also reacted in the normal way.
 *
 * Its names are `keywright:v1json-private:super-reactions:<message>:<emoji>`.
 *
 * It expires: 10 minutes after the last write.
 */
export const SuperReactions = kw.map(
  drcPrivate,
  kw.template(
    "super-reactions:<message>:<emoji>",
    ["super-reactions:", { variable: "message" }, ":", { variable: "emoji" }],
    /^super-reactions:((?:0|[1-9][0-9]{0,19})):([ -z|~\xa0-\ud7ff\ue000-\u{10ffff}]+)$/u,
    { message: snowflakeText, emoji: rest },
  ),
  kw.id(snowflakeText),
  kw.int64,
  { expiry: { ttlMs: 600000 } },
);

/**
 * The threads of a guild, each with its parent channel, so that they can be removed with either.
 *
 * Its names are `keywright:v1json-private:threads:<guild>`.
 */
export const ThreadIndex = kw.map(
  drcPrivate,
  kw.template(
    "threads:<guild>",
    ["threads:", { variable: "guild" }],
    /^threads:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.id(snowflakeText),
);

/**
 * The threads of a guild that a user is a known member of, who leaves them with the guild.
 *
 * Its names are `keywright:v1json-private:member-threads:<guild>:<user>`.
 */
export const MemberThreads = kw.set(
  drcPrivate,
  kw.template(
    "member-threads:<guild>:<user>",
    ["member-threads:", { variable: "guild" }, ":", { variable: "user" }],
    /^member-threads:((?:0|[1-9][0-9]{0,19})):((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText, user: snowflakeText },
  ),
  kw.id(snowflakeText),
);

/**
 * The users whose presence is known in a guild; they need not be known members.
 *
 * Its names are `keywright:v1json-private:presences:<guild>`.
 */
export const PresenceIndex = kw.set(
  drcPrivate,
  kw.template(
    "presences:<guild>",
    ["presences:", { variable: "guild" }],
    /^presences:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
);

/**
 * The channels of a guild that have a stage instance.
 *
 * Its names are `keywright:v1json-private:stage-instances:<guild>`.
 */
export const StageIndex = kw.set(
  drcPrivate,
  kw.template(
    "stage-instances:<guild>",
    ["stage-instances:", { variable: "guild" }],
    /^stage-instances:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
);

/**
 * The stored webhooks of a guild, each with its channel, so that their tokens go with either.
 *
 * Its names are `keywright:v1json-private:webhooks:<guild>`.
 */
export const WebhookIndex = kw.map(
  drcPrivate,
  kw.template(
    "webhooks:<guild>",
    ["webhooks:", { variable: "guild" }],
    /^webhooks:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.id(snowflakeText),
  kw.id(snowflakeText),
);

/**
 * The invites of a guild that have no expiry, each with its channel, so that they go with either.
 *
 * Its names are `keywright:v1json-private:invites:<guild>`.
 */
export const InviteIndex = kw.map(
  drcPrivate,
  kw.template(
    "invites:<guild>",
    ["invites:", { variable: "guild" }],
    /^invites:((?:0|[1-9][0-9]{0,19}))$/u,
    { guild: snowflakeText },
  ),
  kw.text,
  kw.id(snowflakeText),
);

/**
 * The members that the chunks of one request have returned so far; the last chunk removes it.
 *
 * Its names are `keywright:v1json-private:received-members:<guild>:<request>`.
 *
 * It expires: 10 minutes after the last write.
 */
export const ReceivedMembers = kw.set(
  drcPrivate,
  kw.template(
    "received-members:<guild>:<request>",
    ["received-members:", { variable: "guild" }, ":", { variable: "request" }],
    /^received-members:((?:0|[1-9][0-9]{0,19})):((?:0|-?[1-9][0-9]{0,18}))$/u,
    { guild: snowflakeText, request: signed64 },
  ),
  kw.id(snowflakeText),
  { expiry: { ttlMs: 600000 } },
);

/**
 * The users whose leaving was counted in one hour: a repeated removal of one is not counted.
 *
 * A new `member_count` of the guild removes them.
 *
 * Its names are `keywright:v1json-private:departed:<guild>:<hour>`.
 *
 * It expires: 2 hours after the last write.
 */
export const Departed = kw.map(
  drcPrivate,
  kw.template(
    "departed:<guild>:<hour>",
    ["departed:", { variable: "guild" }, ":", { variable: "hour" }],
    /^departed:((?:0|[1-9][0-9]{0,19})):((?:0|-?[1-9][0-9]{0,18}))$/u,
    { guild: snowflakeText, hour: signed64 },
  ),
  kw.id(snowflakeText),
  kw.int64,
  { expiry: { ttlMs: 7200000 } },
);

/** Every kind of key, by name. */
export const keys = {
  Commands,
  Interaction,
  Application,
  AutomodRules,
  Channels,
  Message,
  Thread,
  ThreadMembers,
  Reactions,
  ReactionUsers,
  Emojis,
  Guilds,
  Guild,
  Widget,
  Members,
  Member,
  Integrations,
  WelcomeScreen,
  ScheduledEvents,
  Roles,
  Templates,
  Invite,
  StageInstance,
  Stickers,
  User,
  VoiceStates,
  Presence,
  Webhook,
  CacheSession,
  SuperReactions,
  ThreadIndex,
  MemberThreads,
  PresenceIndex,
  StageIndex,
  WebhookIndex,
  InviteIndex,
  ReceivedMembers,
  Departed,
} as const;
