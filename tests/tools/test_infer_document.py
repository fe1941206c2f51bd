"""Inference from a document: templates, kinds, members and expiries of many notations; hostile documents."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferred_modules import refuse_code, unproved, with_short_classes
from keywright import Key, Keyspace
from keywright.errors import UsageError
from keywright.tools.infer import inferred_model
from keywright.tools.infer.document import LARGEST, infer_document
from keywright.tools.infer.document.notation import notation_of
from keywright.tools.infer.document.words import expiry_in
from keywright_discord.drc import schema as drc
from keywright_discord.spectacles import schema as spectacles
from keywright_meetup import schema as meetup
from keywright_openmod import schema as openmod
from keywright_registry import schema as registry

DOCUMENTS = Path(__file__).parent / "documents"
"""Documents in our own words, with the notation and the layout of the source documents."""
SOURCES = Path(__file__).parents[3] / "shared" / "seeds"
"""The source documents themselves, which are not part of the repository, if they are beside it."""


class Truth(NamedTuple):
    """The file of a source document, and the keys of our schema that it names, below its prefix."""

    file: str
    prefix: str
    keys: tuple[type[Key], ...]


# Chosen by hand: the keys of the schema that the document names, as the schema declares them. What it
# adds to its document is left out. Two documents differ from the schema: that of `drc` prints
# `webhooks{webhook.id}` without a colon, and that of `spectacles` has one `ROLES` for a hash per guild, and
# one `CHANNELS` for a hash and a set per guild (docs/resolutions.md of the system).
TRUTH = {
    "drc": Truth("000_adbac2d8657f8af1.txt", "drc:v1:", tuple(drc.drc)),
    "openmod": Truth(
        "001_f548f65352245adc.txt",
        "",
        (
            *(openmod.TrackingSet, openmod.ModActionSet, openmod.ExtractHash),
            *(openmod.EnforcementSet, openmod.EventMarker, openmod.CacheHash),
        ),
    ),
    "registry": Truth(
        "002_ab396ea612bd7793.txt",
        "registry:",
        (registry.PullCount, registry.PushCount, registry.CachedRepository),
    ),
    "meetup": Truth(
        "003_09cbc34705e9e0fa.txt",
        "",
        tuple(
            kind
            for kind in meetup.meetup
            if kind
            not in (
                *(meetup.ExpirationTime, meetup.LastReminderTime, meetup.DeletionTime),
                *(meetup.AddedUsers, meetup.AddedHosts, meetup.Provisioning, meetup.MisnamedOrphans),
                *(meetup.OrganizerLease, meetup.UserTokensLease, meetup.TaskLease),
            )
        ),
    ),
    "spectacles": Truth(
        "004_63d9dcaa970c2808.txt",
        "",
        tuple(kind for kind in spectacles.spectacles if kind is not spectacles.EmojiIds),
    ),
}
SAME_KIND = {"counter": "value", "claim": "value", "due queue": "sorted set", "record": "hash", "map": "hash"}


def space_of(text: str | bytes) -> Keyspace:
    """Infer from a document. Fail unless the module is ASCII, holds only declarations and is proved."""
    found = infer_document(text if isinstance(text, bytes) else text.encode())
    refuse_code(found.text)
    assert found.text.isascii()
    space = inferred_model(found).spaces[0]
    assert unproved(space) == []
    return space


def shape(source: str) -> str:
    return re.sub("<[^<>]*>", "<>", source)


def kinds(space: Iterable[type[Key]]) -> dict[str, str]:
    return {shape(kind.declaration.template.source): SAME_KIND.get(kind.kind, kind.kind) for kind in space}


def templates(text: str) -> set[str]:
    return {shape(kind.declaration.template.source) for kind in space_of(text)}


@pytest.mark.parametrize("source", ["own words", *(["source document"] if SOURCES.is_dir() else [])])
def test_documents_of_the_shipped_systems_are_declared(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, missed = [], []
    for name, truth in TRUTH.items():
        path = SOURCES / truth.file if source == "source document" else DOCUMENTS / f"{name}.md"
        found = kinds(space_of(path.read_bytes()))
        wanted = {truth.prefix + template: kind for template, kind in kinds(truth.keys).items()}
        both = found.keys() & wanted.keys()
        recall, precision = len(both) / len(wanted), len(both) / len(found)
        alike = sum(found[each] == wanted[each] for each in both) / len(both)
        lines.append(
            f"{name:10} recall {recall:.3f} precision {precision:.3f} of {len(wanted)}, kind {alike:.3f}"
        )
        if recall < 0.95 or precision < 0.95 or alike < 1:
            missed.append((name, found.keys() ^ wanted.keys()))
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\nkeywright infer --document, {source}:", *lines, "")))
    assert not missed


SHOP = """
# Redis of the web shop

Redis 7 runs on `redis.internal:6379`, configured in `config/redis.yml`. Call `client.get(key)`.

## Sessions

`session:<uuid>` - JSON string, expires after 30 minutes. Holds the login of a user.

Fields:

- `user_id` (integer): who is logged in
- `csrf` (string): token
- `lang?` (string): language

## Carts

Each cart is a hash stored at `cart:${cartId}` (TTL 7 days). The field is the SKU.

## Feeds

| Key | Type | TTL | Description |
| --- | --- | --- | --- |
| `feed:%s` | list of post ids | 1h | newest first |
| `user:{id}:followers` | set | - | who follows a user |
| `leaderboard:weekly` | sorted set | 7d | points of players |
| `stats:daily:<date>` | hash | 90 days | counters by name |
| `online_users` | set of user ids | | |
| `lock:[resource]` | string | 30 s | held while a job runs |

`GET /users/{id}` of the HTTP API shows it. See <https://example.org/docs/{page}>.
"""
QUEUE = """
```
queue:{name}:pending      # list of job ids
queue:{name}:running      # sorted set, score is the start in ms since the epoch
job:{id}                  # hash
job:{id}:log              # stream
```

```redis
HGETALL job:{id}
SETEX result:{id} 3600 value
PFADD visitors:{date} 17
```

```python
redis.set(f"secret:{id}", 1)
```

All keys begin with the prefix `qs:`.

## `dedup:{sha256}`

A string that marks a job as seen. It expires after one day.

## user:USER_ID:settings

Hash of settings.

| Field | Type | Meaning |
|---|---|---|
| theme | string | dark or light |
| font_size | int | in points |

## Counters

* `hits:*` counter of hits per page
* `rate:{ip}:{minute}` - counter, TTL: 60 seconds
* `geo:shops` geospatial index
"""
TENANTS = """
Our keyspace
============

`user/#{id}/name` holds the display name (string), `user/#{id}/tags` is a set of strings.

1. `{tenant}.users.{user}.inbox` \u2014 list of message ids
2. `{tenant}.users.{user}` \u2014 MessagePack-encoded object
    - `email`: string
    - `created`: timestamp, RFC 3339
3. `app-config` \u2014 JSON document

   ```json
   {"debug": true, "limits": {"requests": 10}}
   ```
4. `config`: hash

For example `user/17/name`. The function `users.find(id)` reads it. Version `1.2.3`.

`events` is a stream. `image:{id}:{w}x{h}` caches an image for 2 hours (binary).
"""


def test_a_document_with_tables_lists_and_sentences() -> None:
    space = space_of(SHOP)
    assert kinds(space) == {
        "session:<>": "value",
        "cart:<>": "hash",
        "feed:<>": "list",
        "user:<>:followers": "set",
        "leaderboard:weekly": "sorted set",
        "stats:daily:<>": "hash",
        "online_users": "set",
        "lock:<>": "value",
    }
    text = with_short_classes(infer_document(SHOP.encode()).text)
    assert 'class Session(Value[Annotated[SessionDetails, Json]], key="session:<session>"' in text
    assert '    user_id: int\n    """Who is logged in."""\n' in text
    assert "    lang: str | None = None\n" in text
    assert '    """Who follows a user."""\n' in text
    for line in (
        'session:<session>", space=inferred, expiry=expires_in(timedelta(minutes=30))',
        'cart:<cart>", space=inferred, expiry=expires_in(timedelta(days=7))',
        'feed:<feed>", space=inferred, expiry=expires_in(timedelta(hours=1))',
        'stats:daily:<date_>", space=inferred, expiry=expires_in(timedelta(days=90))',
        'lock:<resource>", space=inferred, expiry=expires_in(timedelta(seconds=30))',
    ):
        assert line in text
    assert (
        "# guess: the document names it in a sentence, and does not describe it.\nclass Cart"
        in text.replace("# guess: the alphabet of <cart>: the document does not say.\n", "")
    )


INLINE = """
- `account:{id}`: hash with `name` (string), `born` (unix timestamp in ms) and `visits` (integer)
- `basket:{id}`: a hash from product id to count (integer). Sliding TTL of 2 weeks
- `code:{id}`: string, expires 10 minutes after creation
- `page:{id}`: hash, see `base` and `layout`

| key | type | what |
|---|---|---|
| `badge:{id}` | hash | has the fields `title` (string), `level` (integer) |
"""


def test_members_in_sentences_and_what_an_expiry_runs_from() -> None:
    text = with_short_classes(infer_document(INLINE.encode()).text)
    for line in (
        "    name: str\n    born: Annotated[datetime, EpochMs()]\n    visits: int\n",
        "    title: str\n    level: int\n",
        'class Account(Record[AccountDetails], key="account:<account>"',
        'class Badge(Record[BadgeDetails], key="badge:<badge>"',
        'class Basket(Map[str, int], key="basket:<basket>"',
        'expiry=expires_in(timedelta(days=14), since="last use")',
        'expiry=expires_in(timedelta(minutes=10), since="first write")',
        'class Page(Map[str, str], key="page:<page>"',
        '    """Has the fields title (string), level (integer)."""',
    ):
        assert line in text
    space_of(INLINE)


def test_a_document_with_code_blocks_commands_and_a_prefix() -> None:
    assert kinds(space_of(QUEUE)) == {
        "qs:queue:<>:pending": "list",
        "qs:queue:<>:running": "sorted set",
        "qs:job:<>": "hash",
        "qs:job:<>:log": "stream",
        "qs:result:<>": "value",
        "qs:visitors:<>": "hyperloglog",
        "qs:dedup:<>": "value",
        "qs:user:<>:settings": "hash",
        "qs:hits:<>": "value",
        "qs:rate:<>:<>": "value",
        "qs:geo:shops": "geo",
    }
    text = infer_document(QUEUE.encode()).text
    assert "SortedSet[str, datetime]" in text
    assert "expiry=expires_in(timedelta(hours=1))" in text
    assert '    font_size: int\n    """In points."""\n' in text


def test_a_document_with_other_separators_and_nested_lists() -> None:
    assert kinds(space_of(TENANTS)) == {
        "user/<>/name": "value",
        "user/<>/tags": "set",
        "<>.users.<>.inbox": "list",
        "<>.users.<>": "value",
        "app-config": "value",
        "config": "hash",
        "events": "stream",
        "image:<>:<>x<>": "value",
    }
    text = infer_document(TENANTS.encode()).text
    assert "Value[Annotated[UsersDetails, MessagePack]]" in text
    assert "    email: str\n    created: datetime\n" in text
    assert "    limits: AppConfigLimits\n" in text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user:{id}:posts", "user:<>:posts"),
        ("user:<user id>", "user:<>"),
        ("users:${id}", "users:<>"),
        ("user:#{id}", "user:<>"),
        ("user:{{id}}", "user:<>"),
        ("user:%s:%d", "user:<>:<>"),
        ("user:%(name)s", "user:<>"),
        ("user:$id:posts", "user:<>:posts"),
        ("user:*", "user:<>"),
        ("user:[user_id]", "user:<>"),
        ("user:{id:int}", "user:<>"),
        ("user:USER_ID", "user:<>"),
        ("MEMBERS:GUILD_ID", "MEMBERS:<>"),
        ("{user:<id>}:posts", "{user:<>}:posts"),
        ("{user:{id}}:posts", "{user:<>}:posts"),
        ("posts:{<user>}", "posts:{<>}"),
        ("queue:[<group>:]<event>", "queue:[<>:]<>"),
        ("user:1000:posts", "user:<>:posts"),
        ("session-{id}", "session-<>"),
    ],
)
def test_notations_of_placeholders(text: str, found: str) -> None:
    notation = notation_of(text)
    assert notation is not None
    assert notation.shape == found


@pytest.mark.parametrize(
    "text",
    [
        "f(x)",
        "/users/{id}",
        "https://example.org/{id}",
        "{id}",
        "<a>:<b>",
        "x = {y}",
        "a.md",
        "",
        "{a}{b}:c",
        "a" * 300,
        *("user:{id", "user:id}", "redis.example.com:6379", "--option", "1.2.3", "a b:{c}", "lambda: {x}"),
    ],
)
def test_code_that_is_not_a_key(text: str) -> None:
    assert notation_of(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("TTL: 15 minutes (900 seconds)", 900),
        ("TTL 10 minutes", 600),
        ("expires after 24h", 86400),
        ("It expires in one day.", 86400),
        ("ttl=3600", 3600),
        ("kept for 2 weeks", 1209600),
        ("has a 30-second TTL", 30),
        ("deleted after 1,500 ms", 2),
        ("TTL: ...", None),
        ("expires with its guild", None),
        ("no expiry", None),
        ("Redis 7 has 16 databases", None),
        ("TTL 99999999999 years", None),
    ],
)
def test_expiries_in_words(text: str, seconds: int | None) -> None:
    assert expiry_in(text) == seconds


def test_a_name_without_the_separator_of_the_others_is_doubtful() -> None:
    lines = [f"* `app:thing{n}:{{id}}` (set)" for n in range(8)]
    found = infer_document("\n".join([*lines, "* `app:other{id}` (set)"]).encode())
    doubtful = [key.name for key in found.keys if any("no separator" in doubt for doubt in key.doubts)]
    assert doubtful == ["Other"]


def test_names_that_cannot_be_declared_are_reported_with_their_line() -> None:
    found = infer_document(b"* `a:{id}` (set)\n* `b:{<x>}:{<y>}` (set)\n")
    assert [key.declared.template.source for key in found.keys] == ["a:<id>"]
    assert (
        found.coverage[1] == "the name in line 2 is not declared: it is not a template, or has two readings"
    )


def test_a_document_without_keys_is_refused() -> None:
    with pytest.raises(UsageError, match="the document names no keys"):
        infer_document(b"# Cooking\n\nPut `salt` in the `water`.\n")


def test_a_document_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match=r"more than 524,288\. Give the part that describes keys"):
        infer_document(b"a" * (LARGEST + 1))


HOSTILE = (
    '"""\nimport os\n"""',
    "\\",
    "\\N{DIGIT ONE}",
    "`'''; import os #`",
    "\u202eevil\u2028line",
    "\x00\x1b[31m",
    "{" * 50,
    "<" * 50 + ">" * 50,
    "[" * 500,
    "*" * 500,
    "`" * 300,
    "|" * 300,
    "> " * 100,
    "    - " * 40,
    "class:{self}:__init__",
    "`__import__:{os}`: hash",
    '`user:{id}`: set of """ + exec(\'x\') + """',
    "`a\\x41:{b}`: set",
    "- `None`: string",
    '- `class`: string. \\u0000 """',
    '| Key | Type |\n|---|---|\n| `x:{"""}` | set |',
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
)


def tried(source: bytes) -> None:
    """Infer from a document that may have no keys."""
    try:
        space_of(source)
    except UsageError as error:
        if "names no keys" not in str(error):
            raise


def test_hostile_documents_never_leave_their_literals() -> None:
    noise = random.Random(18)
    good = "\n\n`user:{id}`: hash\n\n"
    for _ in range(60):
        parts = [noise.choice(HOSTILE) for _ in range(noise.randrange(1, 12))]
        parts.insert(noise.randrange(len(parts) + 1), good)
        parts.append(f"`k{noise.randrange(99)}:{{{noise.choice(HOSTILE)}}}`: {noise.choice(HOSTILE)}")
        text = noise.choice(("\n\n", "\n", " ", "")).join(parts)
        tried(text.encode())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400) | st.text(alphabet="`{}<>[]|*:-# \n\\\"'abA_%$", max_size=400).map(str.encode))
def test_any_bytes_are_a_document(source: bytes) -> None:
    tried(source)


def test_repeated_marks_end() -> None:
    for piece in ("[", "`", "*a ", "> ", "![", "<", "{", "`a:{b}` ", "| a ", "- ", "`k:{b}`: set\n\n", "&#"):
        tried((piece * (8_000 // len(piece))).encode())
