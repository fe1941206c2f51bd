"""What belongs together in DRC: every listing that the key reference allows, as it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keywright import Call, gather_list
from keywright.operations import Steps, procedure
from keywright_discord.document_reads import Object, drop_dead, living
from keywright_discord.drc import schema

if TYPE_CHECKING:
    pass


class DrcListings:
    """What belongs together in DRC, by id, as it is stored.

    Messages, invites, webhooks, interactions and users are listed by no key (A30).
    """

    def guild_ids(self) -> Call[set[str]]:
        """The guilds that the bot is in, also those of which nothing else is known (A64)."""
        return schema.Guilds().members()

    @procedure
    def guilds(self) -> Steps[dict[str, Object]]:
        """The guilds that are known; one that is not stays in the index, which says where the bot is."""
        ids = sorted((yield schema.Guilds().members()), key=int)
        found = yield schema.Guild.get_many(ids)
        return {each: body for each, body in zip(ids, found, strict=True) if body is not None}

    def members(self, guild: str) -> Call[dict[str, Object]]:
        """The members of a guild by user id; those that expired leave the index (A14)."""
        return living(schema.Members(guild), lambda user: (schema.Member(guild, user), None))

    def presences(self, guild: str) -> Call[dict[str, Object]]:
        """The presences of a guild by user id."""
        return living(schema.PresenceIndex(guild), lambda user: (schema.Presence(guild, user), None))

    def threads(self, guild: str) -> Call[dict[str, Object]]:
        """The threads of a guild that have a parent channel."""
        return living(schema.ThreadIndex(guild), lambda thread: (schema.Thread(thread), None))

    def stage_instances(self, guild: str) -> Call[dict[str, Object]]:
        """The stage instances of a guild by channel id."""
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
        """The voice states of a guild by user id."""
        return schema.VoiceStates(guild).all()

    def scheduled_events(self, guild: str) -> Call[dict[str, Object]]:
        return schema.ScheduledEvents(guild).all()

    def integrations(self, guild: str) -> Call[dict[str, Object]]:
        return schema.Integrations(guild).all()

    def automod_rules(self, guild: str) -> Call[dict[str, Object]]:
        return schema.AutomodRules(guild).all()

    def templates(self, guild: str) -> Call[dict[str, Object]]:
        """The templates of a guild by code."""
        return schema.Templates(guild).all()

    def commands(self, application: str) -> Call[dict[str, Object]]:
        """The commands of an application, global and of guilds."""
        return schema.Commands(application).all()

    def thread_members(self, thread: str) -> Call[dict[str, Object]]:
        """The known members of a thread by user id."""
        return schema.ThreadMembers(thread).all()

    def reaction_users(self, message: str, emoji: str) -> Call[set[str]]:
        """Who was seen to react with one emoji: a custom emoji's id, else its characters."""
        return schema.ReactionUsers(message, emoji).members()

    @procedure
    def reactions(self, message: str) -> Steps[dict[str, set[str]]]:
        """Every emoji of a message with who reacted; one whose users expired leaves the index."""
        index = schema.Reactions(message)
        emojis = sorted((yield index.members()))
        users = yield gather_list(schema.ReactionUsers(message, each).members() for each in emojis)
        found = dict(zip(emojis, users, strict=True))
        gone = [each for each in emojis if not found[each]]
        yield from drop_dead(index, {each: (schema.ReactionUsers(message, each), None) for each in gone})
        return {each: who for each, who in found.items() if who}
