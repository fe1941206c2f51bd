"""Healthy databases of the shipped models, of the bookshop and of the town, for audits and repairs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import kinship
from audited import Sample
from examples import bookshop
from keywright import Call, Database, Key, Keyring, Secret, gather
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation
from keywright.tools.model import Model
from keywright_discord.drc import schema as drc
from keywright_discord.drc.store import DrcCache
from keywright_discord.spectacles import schema as spectacles
from keywright_discord.spectacles.store import SpectaclesCache
from keywright_discord.traffic import Traffic
from keywright_meetup import schema as meetup
from keywright_openmod import schema as openmod
from keywright_openmod.actions import BanAction, LinkAction
from keywright_openmod.schema import BanExtract, CachedPost, CachedUser, LinkExtract
from keywright_registry import schema as registry
from keywright_registry.repository import Repository

NOW = datetime.now(UTC)
KEYRING = Keyring.generate("test")
OLD_AUDIT = {
    b"type": b"banuser",
    b"actor": b"reddit",
    b"thingId": b"t2_ab",
    b"permalink": b"",
    b"createdAt": b"1",
}


def town() -> Sample:
    def fill(db: Database) -> None:
        for n in range(60):
            person = kinship.Person(f"p{n}")
            db.run(kinship.people.put(person, person.set(f"name {n}")))
            db.run(kinship.home.assign(f"p{n}", f"h{n // 3}"))
            db.run(kinship.desk.assign(f"p{n}", f"d{n}"))
            db.run(kinship.club.replace(f"p{n}", [f"c{n % 20}", f"c{n % 13 + 20}"]))
            db.run(kinship.House(f"h{n}").set("address"))
            db.run(kinship.Club(f"c{n}").set("club"))

    return Sample(Model("town", (kinship.town,)), (), fill, {}, 8)


def shop() -> Sample:
    def fill(db: Database) -> None:
        for n in range(40):
            book, reader = f"b_{n}", bookshop.ADA + n
            db.run(bookshop.all_books.put(bookshop.Book(book), bookshop.Book(book).put(bookshop.WAVES)))
            db.run(bookshop.shelf_of.assign(book, n % 6))
            db.run(bookshop.authors_of.replace(book, [f"a{n % 9}"]))
            db.run(bookshop.card_of.assign(reader, f"{n:08x}"))
            db.run(bookshop.Stock(book).set(n))
            db.run(bookshop.Cover(book).set(b"\x89PNG"))
            db.run(bookshop.Prices(book).put_many({"eur": 1200, "chf": 1500}))
            db.run(bookshop.CopiesBound(book, bookshop.Bound.CLOTH).set(4))
            db.run(bookshop.Item(f"m_{n}").put(bookshop.Magazine(issue=n)))
            db.run(bookshop.Payment(n).put(bookshop.ByCard("card", "0042")))
            db.run(bookshop.ReceiptOf(n).set(bookshop.Receipt(["The Waves"], 1200)))
            db.run(bookshop.Reader(reader).put(bookshop.Profile("Ada", "L", NOW.replace(microsecond=0))))
            db.run(bookshop.ReaderBooks(reader, "wish").add(book))
            db.run(bookshop.Viewed(reader).push(book))
            db.run(bookshop.Session(reader).set(Secret("token")))
            db.run(bookshop.Coupon(f"{n:06x}").set(bookshop.CouponTerms(10, NOW + timedelta(days=9))))
            db.run(bookshop.SearchResult(f"waves {n}".replace(" ", "-")).set([book]))
            db.run(bookshop.Page.of(f"example.org/{n}").set("<p>" * n))
            db.run(bookshop.Note(f"till:{n}").set("note"))
            db.run(bookshop.Arrivals().add(book, NOW))
            db.run(bookshop.Sales().add(bookshop.Sale(book, 100)))
        db.run(bookshop.OpeningHours().set(bookshop.Hours(9, 18)))

    older: dict[type[Key], Callable[[Any], Call[Any]]] = {
        bookshop.OpeningHours: lambda _: _raw(b"SET", b"shop:hours", b"9-18")
    }
    bindings = (bookshop.shop.bind(keyring=KEYRING), bookshop.last_year.bind())
    return Sample(Model("bookshop", (bookshop.shop,)), bindings, fill, older, 4)


def discord(name: str) -> Callable[[], Sample]:
    def sample() -> Sample:
        schema: Any = drc if name == "drc" else spectacles
        cache: Any = DrcCache if name == "drc" else SpectaclesCache
        spaces = (drc.drc, drc.private) if name == "drc" else (spectacles.spectacles, spectacles.private)

        def fill(db: Database) -> None:
            # Guilds stay: a cache that is torn down is not what is to be looked at.
            events = Traffic(7).events(700, guilds=6, members=30, mix={"GUILD_DELETE": 0.0})
            encoded = [(event, msgspec.json.encode(data)) for event, data in events]
            db.run(cache().apply(encoded))

        return Sample(Model(name, spaces), schema.bind(), fill, {}, 12)

    return sample


def registry_sample() -> Sample:
    def fill(db: Database) -> None:
        for n in range(30):
            path = f"group/project-{n}"
            stored = Repository(id=n, namespace_id=1, name=f"project-{n}", path=path, created_at=NOW)
            db.run(registry.CachedRepository.of(path).set(stored))
            db.run(registry.PullCount.of(path).add(n))
            db.run(registry.CountedPath.of(path).set(path))
            db.run(registry.CountBatch.of(path).put(registry.BatchedCounts("id", path, 1, 2)))
            db.run(registry.SizeWithDescendants.of(path).set(n))
            db.run(registry.SizeTimeout.of(path).set(True))
            db.run(registry.RepositoryLsn.of(path).set(n))
            db.run(registry.RepositoryLease.of(path).set(registry.RenameGrant("me", path)))
            db.run(registry.ProjectLease.of(path).acquire(f"token-{n}", timedelta(minutes=5)))
            db.run(registry.RateLimit(f"abc{n}").put(registry.TokenBucket(1.0, 2.0)))
            db.run(registry.CachedUrl(f"{n:064x}").set(registry.SignedUrl("https://example.org")))
            digest = f"sha256:{n:064x}"
            db.run(registry.Blob(digest).put(registry.BlobDescriptor(digest, 3, "text/plain")))
            db.run(registry.RepositoryBlobs(path).add(digest))
            db.run(registry.RepositoryBlob(path, digest).put(registry.MediaTypeOverride("text/html")))

    model = Model("registry", (registry.registry, registry.legacy))
    return Sample(model, (registry.registry.bind(), registry.legacy.bind()), fill, {}, 6)


def openmod_sample() -> Sample:
    def fill(db: Database) -> None:
        for n in range(60):
            user, post = f"t2_u{n}", f"t3_p{n}"
            db.run(openmod.TrackingSet(user).add(post, NOW))
            db.run(openmod.ModActionSet(post).add(f"t3_x{n}", NOW))
            link = LinkExtract(LinkAction.REMOVE_LINK, "t2_mod", user, post)
            ban = BanExtract(BanAction.BAN_USER, "t2_mod", user)
            db.run(openmod.ExtractHash(f"t3_x{n}").put(link if n % 2 else ban))
            db.run(
                openmod.CacheHash(post).put(
                    CachedPost(type="post", title="t", url="u", permalink="p", author=user)
                )
            )
            db.run(openmod.CacheHash(user).put(CachedUser("user", "name")))
            db.run(openmod.EnforcementSet().schedule(user, NOW))
            db.run(openmod.EventMarker(f"modaction:{n}").done())

    def aged(key: Any) -> Any:
        members = [part for pair in OLD_AUDIT.items() for part in pair]
        return gather(_raw(b"UNLINK", key._name), _raw(b"HSET", key._name, *members))

    model = Model("openmod", (openmod.openmod,))
    return Sample(model, tuple(openmod.bind()), fill, {openmod.ExtractHash: aged}, 40)


def meetup_sample() -> Sample:
    def fill(db: Database) -> None:
        for n in range(40):
            event, series, user, discord_user, channel = f"e{n}", f"s{n // 2}", n + 1, 10**17 + n, 10**18 + n
            details = meetup.EventDetails("name", NOW, "https://example.org", "group")
            db.run(meetup.MeetupEvent(event).put(details))
            series_type = meetup.TypeOfSeries(series)
            db.run(meetup.tracked_series.put(series_type, series_type.set("campaign")))
            db.run(meetup.series_of_event.assign(event, series))
            db.run(meetup.people.assign(user, discord_user))
            db.run(meetup.EventGuests(event).add(user))
            db.run(meetup.EventHosts(event).add(user))
            db.run(meetup.UserTokens(user).put(meetup.Tokens(Secret("a"), Secret("b"))))
            if n % 2:
                known = [meetup.DiscordChannels().add(channel)]
                db.run(meetup.channel_of_series.assign(series, channel, also=known))
                db.run(meetup.guest_role.assign(channel, channel + 10**6))
                db.run(meetup.host_role.assign(channel, channel + 2 * 10**6))
                db.run(meetup.ExpirationTime(channel).set(NOW))
            db.run(meetup.MeetupLinking(f"l{n}").set(discord_user))
            db.run(meetup.Csrf(f"c{n}").set(Secret("csrf")))
        db.run(meetup.AccessToken().set(Secret("token")))

    return Sample(Model("meetup", (meetup.meetup,)), (meetup.meetup.bind(keyring=KEYRING),), fill, {}, 3)


SAMPLES: dict[str, Callable[[], Sample]] = {
    "town": town,
    "bookshop": shop,
    "drc": discord("drc"),
    "spectacles": discord("spectacles"),
    "registry": registry_sample,
    "openmod": openmod_sample,
    "meetup": meetup_sample,
}


def _raw(verb: bytes, name: bytes, *operands: bytes) -> Plain:
    return Plain(Operation("age", verb, Effect.ONCE), (name, *operands), name)
