"""Listings of DRC as they are stored: every listing that the key reference allows."""

from __future__ import annotations

from keywright import Call, gather_list
from keywright.operations import Steps, procedure
from keywright_discord.document_reads import Object, drop_dead, living
from keywright_discord.drc import schema


class DrcListings:
    """Entities that belong together in DRC, by id, as they are stored.

    No key lists messages, invites, webhooks, interactions or users (docs/resolutions.md#a30).
    """

    def guild_ids(self) -> Call[set[str]]:
        """Return the ids of the guilds that the bot is in, also of those that are not stored."""
        return schema.Guilds().members()

    @procedure
    def guilds(self) -> Steps[dict[str, Object]]:
        """Return the stored guilds. The others stay in the index, which lists where the bot is."""
        ids = sorted((yield schema.Guilds().members()), key=int)
        found = yield schema.Guild.get_many(ids)
        return {each: body for each, body in zip(ids, found, strict=True) if body is not None}

    def members(self, guild: str) -> Call[dict[str, Object]]:
        """Return the members of a guild by user id; expired ones are removed from the index."""
        return living(schema.Members(guild), lambda user: (schema.Member(guild, user), None))

    def presences(self, guild: str) -> Call[dict[str, Object]]:
        """Return the presences of a guild by user id."""
        return living(schema.PresenceIndex(guild), lambda user: (schema.Presence(guild, user), None))

    def threads(self, guild: str) -> Call[dict[str, Object]]:
        """Return the threads of a guild that have a parent channel."""
        return living(schema.ThreadIndex(guild), lambda thread: (schema.Thread(thread), None))

    def stage_instances(self, guild: str) -> Call[dict[str, Object]]:
        """Return the stage instances of a guild by channel id."""
        return living(schema.StageIndex(guild), lambda channel: (schema.StageInstance(channel), None))

    def channels(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Channels(guild).all()

    def roles(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Roles(guild).all()

    def emojis(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Emojis(guild).all()

    def stickers(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Stickers(guild).all()

    def voice_states(self, guild: str) -> Call[dict[str, Object]]:
        """Return the voice states of a guild by user id."""
        return schema.VoiceStates(guild).all()

    def scheduled_events(self, guild: str) -> Call[dict[str, Object]]:
        return schema.ScheduledEvents(guild).all()

    def integrations(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Integrations(guild).all()

    def automod_rules(self, guild: str) -> Call[dict[str, Object]]:
        return schema.AutomodRules(guild).all()

    def templates(self, guild: str) -> Call[dict[str, Object]]:
        """Return the templates of a guild by code."""
        return schema.Templates(guild).all()

    def commands(self, application: str) -> Call[dict[str, Object]]:
        """Return the commands of an application, global ones and those of guilds."""
        return schema.Commands(application).all()

    def thread_members(self, thread: str) -> Call[dict[str, Object]]:
        """Return the known members of a thread by user id."""
        return schema.ThreadMembers(thread).all()

    def reaction_users(self, message: str, emoji: str) -> Call[set[str]]:
        """Return the users seen to react with an emoji, given as a custom emoji's id or as characters."""
        return schema.ReactionUsers(message, emoji).members()

    @procedure
    def reactions(self, message: str) -> Steps[dict[str, set[str]]]:
        """Return the users of every emoji of a message; an emoji without users is removed from the index."""
        index = schema.Reactions(message)
        emojis = sorted((yield index.members()))
        users = yield gather_list(schema.ReactionUsers(message, each).members() for each in emojis)
        found = dict(zip(emojis, users, strict=True))
        gone = [each for each in emojis if not found[each]]
        yield from drop_dead(index, {each: (schema.ReactionUsers(message, each), None) for each in gone})
        return {each: who for each, who in found.items() if who}
