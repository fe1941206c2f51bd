"""References and relations between inferred keys: what ids lead to, beyond what chance explains."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from inferred_modules import inferred_server, refuse_code, unproved
from keywright import Keyspace, connect, gather_list
from keywright.engine.nodes import Batch
from keywright.errors import UsageError
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation
from keywright.testing import as_user
from keywright.tools.infer import Inference, inferred_model
from keywright.tools.infer.links import search
from keywright.tools.infer.model import require_declarations

NOISE = random.Random(18)
SPARSE = [NOISE.randrange(10**17, 10**18) for _ in range(60)]


def plant(url: str, commands: Iterable[tuple[object, ...]]) -> None:
    with connect(url) as db:
        db.run(gather_list(_command(*map(_bytes, each)) for each in commands))


def _command(verb: bytes, name: bytes, *operands: bytes) -> Plain:
    return Plain(Operation("plant", verb, Effect.ONCE), (name, *operands), name)


def _bytes(each: object) -> bytes:
    return each if isinstance(each, bytes) else str(each).encode()


def inferred(url: str) -> tuple[Inference, Keyspace]:
    found = inferred_server(url)
    refuse_code(found.text)
    space = inferred_model(found).spaces[0]
    assert unproved(space) == []
    return found, space


def joined(space: Keyspace) -> set[tuple[str, str, str]]:
    return {(each.source.__name__, each.name, each.target.__name__) for each in space.references}


def kind_of(space: Keyspace, name: str) -> Any:
    return next(kind for kind in space if kind.__name__ == name)


def places(space: Keyspace, kind: str, key: Any, value: Any) -> set[str]:
    """Return what the references of a class make of a value."""
    return {
        repr(place.key)
        for each in space.references
        if each.source.__name__ == kind
        for place in each.places(key, value)
    }


def test_members_fields_and_documents_that_lead_to_keys(redis_url: str) -> None:
    users = SPARSE
    posts = [f"p{n:03x}f" for n in NOISE.sample(range(4000), 50)]
    plant(
        redis_url,
        [
            *(("HSET", f"user:{user}", "name", "n", "born", 1970 + n) for n, user in enumerate(users)),
            *(("SADD", f"followers:{user}", *NOISE.sample(users, 4)) for user in users[:40]),
            *(("RPUSH", f"recent:{user}", *NOISE.sample(users, 3)) for user in users[:40]),
            *(("ZADD", f"ranking:{n}", n, users[n], n + 1, users[n + 1]) for n in range(20)),
            *(("HSET", f"post:{post}", "author", NOISE.choice(users), "text", "t") for post in posts),
            *(
                ("SET", f"note:{n}", json.dumps({"by": str(users[n]), "seen": [str(users[n + 1])]}))
                for n in range(40)
            ),
            *(("HSET", f"votes:{post}", NOISE.choice(users), "up", users[0], "down") for post in posts),
        ],
    )
    found, space = inferred(redis_url)
    assert joined(space) >= {
        ("Followers", "members", "User"),
        ("Recent", "members", "User"),
        ("Ranking", "members", "User"),
        ("Post", "author", "User"),
        ("Note", "by", "User"),
        ("Note", "seen", "User"),
        ("Votes", "fields", "User"),
    }
    assert not [each for each in joined(space) if each[1] in ("born", "text", "name")]
    assert all(not each.required for each in space.references)
    assert (
        "members lead to user:<user>, 0 % of random ones.\nrefers(Followers, User, lambda _, found: found"
        in found.text
    )
    assert not [user for user in users if str(user) in found.text]
    note = kind_of(space, "Note")
    with connect(redis_url, space.bind()) as db:
        key = note(7)
        value = db.run(key.get())
    assert len(places(space, "Note", key, value)) == 2


def test_members_lead_to_whole_objects_before_collections_of_their_own_class(redis_url: str) -> None:
    plant(
        redis_url,
        [
            *(("HSET", f"user:{user}", "name", "n", "born", 1970) for user in SPARSE),
            *(("SADD", f"user:{user}:followers", *NOISE.sample(SPARSE, 4)) for user in SPARSE),
        ],
    )
    _, space = inferred(redis_url)
    assert ("UserFollowers", "members", "User") in joined(space)


def test_the_share_of_ids_that_lead_somewhere_is_the_evidence(redis_url: str) -> None:
    gone = [NOISE.randrange(10**17, 10**18) for _ in range(3)]
    plant(
        redis_url,
        [
            *(("SET", f"user:{user}", "u") for user in SPARSE),
            *(("SADD", f"team:{n}", each) for n, each in enumerate((*SPARSE[:47], *gone))),
        ],
    )
    found, _ = inferred(redis_url)
    assert "# 94 % of 50 members lead to user:<user>, 0 % of random ones." in found.text
    assert "1 references and relations between them" in found.coverage


def test_numbers_that_exist_by_chance_are_not_references(redis_url: str) -> None:
    plant(
        redis_url,
        [
            *(("SET", f"user:{n}", "u") for n in range(1, 301)),
            *(("HSET", f"order:{n}", "items", n % 90 + 1, "user", n % 280 + 1) for n in range(1000, 1200)),
            *(("SADD", f"sizes:{n}", n % 50 + 1, n % 40 + 2) for n in range(7000, 7100)),
        ],
    )
    found, space = inferred(redis_url)
    assert joined(space) == set()
    assert (
        "# guess: user of Order may refer to user:<user>: 100 % of 64 ids lead to user:<user>, 100 % of"
        in found.text
    )
    assert "items of Order" not in found.text
    assert "Sizes may refer" not in found.text


def test_numbers_with_gaps_are_references_if_all_exist(redis_url: str) -> None:
    kept = sorted(NOISE.sample(range(1, 1000), 300))
    plant(
        redis_url,
        [
            *(("SET", f"user:{n}", "u") for n in kept),
            *(
                ("HSET", f"order:{n}", "buyer", NOISE.choice(kept), "size", n % 999)
                for n in range(5000, 5200)
            ),
        ],
    )
    _, space = inferred(redis_url)
    assert joined(space) == {("Order", "buyer", "User")}


def test_relations_of_which_both_directions_are_proved(redis_url: str) -> None:
    people, cards, teams = (
        SPARSE[:40],
        [f"c{n:04x}ab" for n in range(900, 940)],
        [f"t{n:03x}cd" for n in range(8)],
    )
    clubs = {person: NOISE.sample(range(100, 160), 2) for person in people}
    plant(
        redis_url,
        [
            *(("SET", f"person:{p}:card", c) for p, c in zip(people, cards, strict=True)),
            *(("SET", f"card:{c}:person", p) for p, c in zip(people, cards, strict=True)),
            *(("SET", f"person:{p}:team", teams[n % 8]) for n, p in enumerate(people)),
            *(("SADD", f"team:{teams[n % 8]}:people", p) for n, p in enumerate(people)),
            *(("SADD", f"person:{p}:clubs", *clubs[p]) for p in people),
            *(("SADD", f"club:{club}:people", p) for p in people for club in clubs[p]),
            *(("SET", f"house:{p}", "h") for p in people),
            ("SADD", "houses", *people),
        ],
    )
    found, space = inferred(redis_url)
    assert "one_to_one(PersonCard, inverse=CardPerson)" in found.text or (
        "one_to_one(CardPerson, inverse=PersonCard)" in found.text
    )
    assert "many_to_one(PersonTeam, inverse=TeamPeople)" in found.text
    assert "many_to_many(" in found.text
    assert "index(House, by=Houses)" in found.text
    assert len(space.links) == 4
    assert "% of 40 in " in found.text


def test_a_relation_that_is_broken_in_places_is_a_guess(redis_url: str) -> None:
    people, cards = SPARSE[:40], [f"c{n:04x}ab" for n in range(900, 940)]
    plant(
        redis_url,
        [
            *(("SET", f"person:{p}:card", c) for p, c in zip(people, cards, strict=True)),
            *(
                ("SET", f"card:{c}:person", people[(n + 1) % 40] if n % 4 == 0 else people[n])
                for n, c in enumerate(cards)
            ),
        ],
    )
    found, space = inferred(redis_url)
    assert space.links == []
    assert "# guess: " in found.text
    assert "may be two sides of a relation: 75 % of 40 ids in " in found.text


def test_ids_that_begin_with_text_of_the_name_are_references(redis_url: str) -> None:
    digests = [f"{NOISE.getrandbits(128):032x}" for _ in range(30)]
    plant(
        redis_url,
        [
            *(("SET", f"blob:md5:{digest}", "b") for digest in digests),
            *(
                ("SADD", f"layer:{n}", *(f"md5:{each}" for each in NOISE.sample(digests, 3)))
                for n in range(20)
            ),
        ],
    )
    found, space = inferred(redis_url)
    assert [(each.source.__name__, each.target.__name__) for each in space.references] == [
        ("Layer", "BlobMd5")
    ]
    assert "lambda _, found: (each[4:] for each in found)" in found.text
    layer = kind_of(space, "Layer")
    assert places(space, "Layer", layer(1), {f"md5:{digests[0]}"}) == {
        repr(kind_of(space, "BlobMd5")(digests[0]))
    }


def test_an_id_and_a_variable_of_the_key_lead_to_a_key_of_both(redis_url: str) -> None:
    guilds, users = SPARSE[:10], SPARSE[10:]
    pairs = [(guild, user) for guild in guilds for user in NOISE.sample(users, 5)]
    plant(
        redis_url,
        [
            *(("SADD", f"members:{guild}", user) for guild, user in pairs),
            *(("SET", f"members:{guild}:{user}", "m") for guild, user in pairs),
        ],
    )
    found, space = inferred(redis_url)
    assert ("Members", "members", "Members2") in joined(space)
    assert "lambda key, found: ((key.member_id, each) for each in found)" in found.text


def test_lookups_are_bounded_and_in_batches(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        redis_url,
        [
            *(("SET", f"user:{user}", "u") for user in SPARSE),
            *(("SADD", f"team:{n}", user) for n, user in enumerate(SPARSE)),
        ],
    )
    batches: list[int] = []
    made = Batch

    def counted(wires: list[Any]) -> Any:
        batches.append(len(wires))
        return made(wires)

    monkeypatch.setattr(search, "Batch", counted)
    found, _ = inferred(redis_url)
    assert len(found.links) == 1
    assert len(batches) <= 5
    assert max(batches) <= search.BATCH
    monkeypatch.setattr(search, "MOST_COMMANDS", 0)
    assert inferred(redis_url)[0].links == ()


@pytest.mark.parametrize(
    "ids",
    [
        "lambda _, found: open(found)",
        "lambda _, found: [found.__class__]",
        "lambda _, found: [found.read()]",
        "lambda _, found: [int(found, base=8)]",
        "lambda _, found: [each for each in found]",
        "lambda _, found: (yield)",
    ],
)
def test_a_reference_with_other_code_is_not_run(ids: str) -> None:
    with pytest.raises(UsageError, match="is not a declaration"):
        require_declarations(f"refers(A, B, {ids}, name='x')")


def test_hostile_ids_are_looked_up_as_they_are(redis_url: str) -> None:
    nasty = ("--5", "-", "\u0663", "9" * 5000, "", " ", "{x}", "*", "\x00", '"""', "a:b", "t" * 300)
    plant(
        redis_url,
        [
            *(("SET", f"user:{user}", "u") for user in SPARSE),
            *(("SADD", f"team:{n}", each, SPARSE[n]) for n, each in enumerate(nasty)),
            *(("HSET", f"box:{n}", "owner", each) for n, each in enumerate(nasty)),
            *(("SET", f"doc:{n}", json.dumps({"by": each, "n": 10**30 + n})) for n, each in enumerate(nasty)),
            *(("SET", f"deep:{n}", "[" * 2000 + "]" * 2000) for n in range(5)),
            *(("SET", f"text:{each}"[:100], each[:100]) for each in nasty),
        ],
    )
    found, _ = inferred(redis_url)
    assert found.text.isascii()


def test_an_auditor_who_may_not_look_up_gets_no_links(redis_url: str) -> None:
    plant(
        redis_url,
        [
            *(("SET", f"user:{user}", "u") for user in SPARSE),
            *(("SADD", f"team:{n}", user) for n, user in enumerate(SPARSE)),
        ],
    )
    plant(redis_url, [("ACL", "SETUSER", "reader", "on", ">pass", "~*", "+@all", "-exists")])
    found, _ = inferred(as_user(redis_url, "reader", "pass"))
    assert found.links == ()
    assert found.matched == found.names
