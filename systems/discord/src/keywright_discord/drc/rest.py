"""Resources that only Discord's REST API returns, as changes for `DrcCache.store` (docs/resolutions.md#a85).

Payloads are response bodies, as bytes or decoded. Of most of these resources no gateway event stores or
removes one: the program that fetches it stores it, and drops it when it is gone. The functions that replace
all of a guild take a complete list.

    db.run(cache.store(rest.store_webhook(response.content)))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from keywright_discord import entities
from keywright_discord.changes import Change, Drop, Kind, Mode, Put, ReplaceAll
from keywright_discord.entities import Nested
from keywright_discord.raw_json import Fields, PayloadError, encode, fields, identity, one_id, scalar

Payload: TypeAlias = bytes | Mapping[str, Any]
"""A response body: its JSON, or the decoded object."""

LISTED_INTEGRATIONS = 50


def store_command(application: str, payload: Payload) -> list[Change]:
    """Store a command that was created or edited; global and guild commands share a hash."""
    return [_command(application, payload)]


def store_commands(application: str, payloads: Iterable[Payload]) -> list[Change]:
    """Replace all commands of an application, global ones and those of guilds."""
    return [ReplaceAll(Kind.COMMAND, _id(application), [_command(application, each) for each in payloads])]


def drop_command(application: str, command: str) -> list[Change]:
    return [Drop(Kind.COMMAND, (_id(application), _id(command)))]


def store_widget(guild: str, payload: Payload) -> list[Change]:
    """Store a guild's widget as it is: its members are anonymous, so they are not users."""
    given = _given(payload, "widget")
    return [Put(Kind.WIDGET, (_id(guild),), given, given)]


def drop_widget(guild: str) -> list[Change]:
    return [Drop(Kind.WIDGET, (_id(guild),))]


def store_welcome_screen(guild: str, payload: Payload) -> list[Change]:
    given = _given(payload, "welcome screen")
    return [Put(Kind.WELCOME_SCREEN, (_id(guild),), given, given)]


def drop_welcome_screen(guild: str) -> list[Change]:
    return [Drop(Kind.WELCOME_SCREEN, (_id(guild),))]


def store_template(payload: Payload) -> list[Change]:
    """Store a template of its source guild; its creator becomes an id.

    `serialized_source_guild` has placeholders for ids, so nothing in it is normalised.
    """
    given = _given(payload, "template")
    return list(_template(one_id(given, "source_guild_id", "template"), given).changes(Mode.REPLACE))


def store_templates(guild: str, payloads: Iterable[Payload]) -> list[Change]:
    """Replace all templates of a guild."""
    return _all_of(
        Kind.TEMPLATE, guild, [_template(_id(guild), _given(each, "template")) for each in payloads]
    )


def drop_template(guild: str, code: str) -> list[Change]:
    return [Drop(Kind.TEMPLATE, (_id(guild), code))]


def store_webhook(payload: Payload) -> list[Change]:
    """Store a webhook; its user becomes an id. Its `token` is a secret, and stored as received."""
    return list(_webhook(payload).changes(Mode.REPLACE))


def store_webhooks(guild: str, payloads: Iterable[Payload]) -> list[Change]:
    """Replace all webhooks of a guild."""
    return _all_of(Kind.WEBHOOK, guild, [_webhook(each) for each in payloads])


def drop_webhook(webhook: str) -> list[Change]:
    return [Drop(Kind.WEBHOOK, (_id(webhook),))]


def store_automod_rules(guild: str, payloads: Iterable[Payload]) -> list[Change]:
    """Replace all auto moderation rules of a guild, of which no event has the list."""
    given = [_given(each, "auto moderation rule") for each in payloads]
    kind = Kind.AUTOMOD_RULE
    rules = [entities.entity(kind, (_id(guild), one_id(each, "id", kind.value)), each, ()) for each in given]
    return _all_of(kind, guild, rules)


def store_integrations(guild: str, payloads: Iterable[Payload]) -> list[Change]:
    """Replace all integrations of a guild, of which no event has the list.

    Discord lists 50 at most, so a list of as many removes none.
    """
    given = [_given(each, "integration") for each in payloads]
    nested = [entities.integration(each, _id(guild)) for each in given]
    if len(nested) >= LISTED_INTEGRATIONS:
        return [change for each in nested for change in each.changes(Mode.REPLACE)]
    return _all_of(Kind.INTEGRATION, guild, nested)


def store_application(payload: Payload) -> list[Change]:
    """Store an application; its owner, bot and the users of its team become ids."""
    return list(entities.application(_given(payload, "application")).changes(Mode.REPLACE))


def drop_application(application: str) -> list[Change]:
    return [Drop(Kind.APPLICATION, (_id(application),))]


def store_invite(payload: Payload) -> list[Change]:
    """Store an invite; its inviter and target become ids."""
    return list(entities.invite(_given(payload, "invite")).changes(Mode.REPLACE))


def store_invites(guild: str, payloads: Iterable[Payload]) -> list[Change]:
    """Replace the invites of a guild; of those that are gone, the ones with a `max_age` expire."""
    invites = [entities.invite(_given(each, "invite")) for each in payloads]
    return _all_of(Kind.INVITE, guild, invites)


def drop_invite(code: str) -> list[Change]:
    return [Drop(Kind.INVITE, (_code(code, "invite.code"),))]


def _command(application: str, payload: Payload) -> Put:
    given = _given(payload, "command")
    return Put(Kind.COMMAND, (_id(application), one_id(given, "id", "command")), given, given)


def _webhook(payload: Payload) -> Nested:
    given = _given(payload, "webhook")
    return entities.entity(Kind.WEBHOOK, (one_id(given, "id", "webhook"),), given, ("user",))


def _all_of(kind: Kind, guild: str, nested: list[Nested]) -> list[Change]:
    children = [child for each in nested for child in each.children]
    return [*children, ReplaceAll(kind, _id(guild), [each.put for each in nested])]


def _template(guild: str, given: Fields) -> Nested:
    code = scalar(given["code"], "template.code") if "code" in given else None
    return entities.entity(Kind.TEMPLATE, (guild, _code(code, "template.code")), given, ("creator",))


def _given(payload: Payload, what: str) -> Fields:
    return fields(payload if isinstance(payload, bytes) else encode(payload), what)


def _id(found: str) -> str:
    return identity(found, "an id")


def _code(found: object, what: str) -> str:
    if not isinstance(found, str) or not found:
        raise PayloadError(what, "a code", found)
    return found
