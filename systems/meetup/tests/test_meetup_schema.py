"""The keys, row by row, in the words of the bot's document; then the additions."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from keywright import Context, Key, Keyring, Record, Secret, check, preview
from keywright.testing import Raw
from keywright_meetup import schema
from keywright_meetup.schema import meetup

from .meetup_town import BIG, NOW, Opener, Place, details, tokens

STRING, SET, HASH = "string", "set", "hash"
U64 = "an unsigned 64-bit integer"
DISCORD = "a snowflake (an unsigned 64-bit integer)"
TEXT = "an identifier (A-Z a-z 0-9 _ -)"
SECRET = "a secret: UTF-8 text, sealed where a keyring is bound"
TIME = "an RFC 3339 time"
DETAILS = ("name", "time", "link", "urlname")

DOCUMENT: list[tuple[str, str, Any, type[Key]]] = [
    # Meetup Events
    ("meetup_events", SET, TEXT, schema.MeetupEvents),
    ("meetup_event:{}:meetup_users", SET, U64, schema.EventGuests),
    ("meetup_event:{}:meetup_hosts", SET, U64, schema.EventHosts),
    ("meetup_event:{}:event_series", STRING, TEXT, schema.SeriesOfEvent),
    ("meetup_event:{}", HASH, DETAILS, schema.MeetupEvent),
    # Meetup Users
    ("meetup_users", SET, U64, schema.MeetupUsers),
    ("meetup_user:{}:discord_user", STRING, DISCORD, schema.DiscordUserOfMeetupUser),
    ("meetup_user:{}:oauth2_tokens", HASH, ("access_token", "refresh_token"), schema.UserTokens),
    # Discord Users
    ("discord_users", SET, DISCORD, schema.DiscordUsers),
    ("discord_user:{}:meetup_user", STRING, U64, schema.MeetupUserOfDiscordUser),
    # Event Series
    ("event_series", SET, TEXT, schema.EventSeries),
    ("event_series:{}:meetup_events", SET, TEXT, schema.SeriesEvents),
    ("event_series:{}:discord_channel", STRING, DISCORD, schema.ChannelOfSeries),
    ("event_series:{}:type", STRING, "one of 'campaign', 'adventure'", schema.TypeOfSeries),
    # Discord Channels
    ("discord_channels", SET, DISCORD, schema.DiscordChannels),
    ("discord_channel:{}:event_series", STRING, TEXT, schema.SeriesOfChannel),
    ("discord_channel:{}:discord_role", STRING, DISCORD, schema.GuestRoleOfChannel),
    ("discord_channel:{}:discord_host_role", STRING, DISCORD, schema.HostRoleOfChannel),
    ("discord_channel:{}:removed_hosts", SET, DISCORD, schema.RemovedHosts),
    ("discord_channel:{}:removed_users", SET, DISCORD, schema.RemovedUsers),
    ("orphaned_discord_channels", SET, DISCORD, schema.OrphanedChannels),
    # Discord Roles
    ("discord_roles", SET, DISCORD, schema.DiscordRoles),
    ("discord_host_roles", SET, DISCORD, schema.DiscordHostRoles),
    ("discord_role:{}:discord_channel", STRING, DISCORD, schema.ChannelOfGuestRole),
    ("discord_host_role:{}:discord_channel", STRING, DISCORD, schema.ChannelOfHostRole),
    ("orphaned_discord_roles", SET, DISCORD, schema.OrphanedRoles),
    # Linking
    ("meetup_linking:{}:discord_user", STRING, DISCORD, schema.MeetupLinking),
    ("csrf:{}", STRING, SECRET, schema.Csrf),
    # OAuth2 Organizer Token
    ("meetup_access_token", STRING, SECRET, schema.AccessToken),
    ("meetup_refresh_token", STRING, SECRET, schema.RefreshToken),
    ("meetup_access_token_refresh_time", STRING, TIME, schema.RefreshTime),
]
ADDITIONS: list[tuple[str, str, Any, type[Key]]] = [
    ("discord_channel:{}:expiration_time", STRING, TIME, schema.ExpirationTime),
    ("discord_channel:{}:last_expiration_reminder_time", STRING, TIME, schema.LastReminderTime),
    ("discord_channel:{}:deletion_time", STRING, TIME, schema.DeletionTime),
    ("discord_channel:{}:added_users", HASH, None, schema.AddedUsers),
    ("discord_channel:{}:added_hosts", HASH, None, schema.AddedHosts),
    ("discord_provisioning", HASH, None, schema.Provisioning),
    ("orphaned_roles", SET, DISCORD, schema.MisnamedOrphans),
    ("lock:meetup_refresh_token", STRING, None, schema.OrganizerLease),
    ("lock:meetup_user:{}:oauth2_tokens", STRING, None, schema.UserTokensLease),
    ("lock:meetup_task:{}", STRING, None, schema.TaskLease),
]


@pytest.mark.parametrize(
    ("template", "redis_type", "holds", "kind"), [*DOCUMENT, *ADDITIONS], ids=lambda each: str(each)[:40]
)
def test_a_key_is_as_the_document_has_it(template: str, redis_type: str, holds: Any, kind: type[Key]) -> None:
    assert re.sub(r"<\w+>", "{}", kind.declaration.template.source) == template
    assert kind.redis_type == redis_type
    if isinstance(holds, tuple):
        assert issubclass(kind, Record)
        (shape,) = kind.shapes()
        assert tuple(member.attribute for member in shape.members) == holds
    elif holds is not None:
        assert kind.declaration.codecs[0].expected == holds


def test_every_key_is_in_one_of_the_tables_and_in_their_order() -> None:
    assert [row[3] for row in [*DOCUMENT, *ADDITIONS]] == meetup.keys


def test_the_declaration_is_proved_sound() -> None:
    assert [finding for finding in check(meetup) if finding.severity == "error"] == []


def test_every_relation_of_the_document_is_declared_with_its_inverse() -> None:
    related = {frozenset(key.declaration.template.source for key in link.keys[:2]) for link in meetup.links}
    assert related == {
        frozenset({"meetup_user:<user>:discord_user", "discord_user:<user>:meetup_user"}),
        frozenset({"meetup_event:<event>:event_series", "event_series:<series>:meetup_events"}),
        frozenset({"event_series:<series>:discord_channel", "discord_channel:<channel>:event_series"}),
        frozenset({"discord_channel:<channel>:discord_role", "discord_role:<role>:discord_channel"}),
        frozenset(
            {"discord_channel:<channel>:discord_host_role", "discord_host_role:<role>:discord_channel"}
        ),
        frozenset({"event_series:<series>:type", "event_series"}),
    }


def test_short_lived_keys_live_as_long_as_the_bot_let_them() -> None:
    expiries = {kind: kind.declaration.expiry for kind in meetup}
    lives = {kind: expiry.ttl_ms for kind, expiry in expiries.items() if expiry is not None}
    assert lives == {schema.MeetupLinking: 600_000, schema.Csrf: 3_600_000}


def test_ids_are_exact_to_64_bits_and_times_are_rfc_3339(place: Place) -> None:
    place.db.run(schema.DiscordUserOfMeetupUser(BIG).set(2**64 - 1))
    place.db.run(schema.MeetupEvent("abc").write(details(time=NOW)))
    assert place.raw("GET", f"meetup_user:{BIG}:discord_user") == b"18446744073709551615"
    assert place.raw("HGET", "meetup_event:abc", "time") == b"2019-08-08T17:30:00+00:00"
    assert place.db.run(schema.DiscordUserOfMeetupUser(BIG).get()) == 2**64 - 1


def test_a_time_with_another_offset_is_read_as_utc(place: Place) -> None:
    place.raw("SET", "discord_channel:7:expiration_time", "2019-08-08T19:30:00.5+02:00")
    assert place.db.run(schema.ExpirationTime(7).get()) == datetime(2019, 8, 8, 17, 30, 0, 500000, UTC)


def test_a_random_id_has_22_characters_that_a_key_may_have() -> None:
    made = {schema.new_id() for _ in range(200)}
    assert len(made) == 200
    assert {len(each) for each in made} == {22}
    assert all(schema.TypeOfSeries(each) for each in made)


def test_tokens_are_stored_in_clear_without_a_keyring_and_never_shown(place: Place) -> None:
    call = schema.AccessToken().set(Secret("tell-nobody"))
    place.db.run(call)
    assert place.raw("GET", "meetup_access_token") == b"tell-nobody"
    assert "tell-nobody" not in repr(call) + repr(place.db.run(schema.AccessToken().get()))


def test_tokens_are_sealed_where_a_keyring_is_bound_and_clear_ones_still_read(
    redis_url: str, raw: Raw, open_database: Opener
) -> None:
    keyring = Keyring("k1", {"k1": bytes(32)})
    clear, sealing = open_database(redis_url), open_database(redis_url, meetup.bind(keyring=keyring))
    clear.run(schema.UserTokens(5).write(tokens()))
    assert sealing.run(schema.UserTokens(5).get()) == tokens()
    sealing.run(schema.UserTokens(6).write(tokens()))
    stored = raw("HGETALL", "meetup_user:6:oauth2_tokens")
    assert b"access-a" not in b"".join(stored.values())
    assert sealing.run(schema.UserTokens(6).get()) == tokens()


def test_a_sealed_token_is_not_written_by_a_preview_without_a_keyring() -> None:
    (wire,) = preview(schema.AccessToken().set(Secret("x")), Context())
    assert wire.arguments == (b"SET", b"meetup_access_token", b"x")


def test_new_ids_are_not_taken_for_options() -> None:
    """One in 64 began with a dash."""
    assert not [made for made in (schema.new_id() for _ in range(2000)) if made.startswith("-")]
