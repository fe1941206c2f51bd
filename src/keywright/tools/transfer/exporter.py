"""Export: the keys of a model as lines of JSON, in bounded pages. It only reads.

It is not a snapshot: keys that are written meanwhile may be in it, old or new, or not. The server may return
a name twice, so digests of all names are kept: about 70 bytes a key.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import EngineError, KeywrightError, ServerRefusedError, WrongTypeError
from keywright.keyspace import Key, Keyspace, gather_list
from keywright.tools.audit.findings import masked_name
from keywright.tools.audit.matcher import Matcher
from keywright.tools.key_walks import OnProgress, name_pages, variables_of
from keywright.tools.pace import GENTLE, Pace
from keywright.tools.transfer.lines import FORMAT, FileEnd, FileHeader, encode_line, line_of
from keywright.tools.transfer.stored import StoredKey, TooLarge, read_whole
from keywright.tools.transfer.validation import Validator

__all__ = ["Exported", "LeftOut", "export_keys"]

TOGETHER = 100
KEPT = 20

SECRET = "secrets, which --with-secrets exports"
DENIED = "access rules deny reading"
UNDECLARED = "no template of the model"
OLDER = "an older place, or another version: migrate them first"


class LeftOut(NamedTuple):
    """One key that is not exported, masked, and why."""

    key: str
    reason: str


class Exported(NamedTuple):
    """The result of an export: keys by template, and keys that were left out by the reason."""

    keys: dict[str, int]
    left_out: dict[str, int]
    examples: list[LeftOut]
    """Some keys that could not be exported, which is an error; secrets and unknown keys are not."""

    @property
    def failed(self) -> bool:
        return bool(self.examples)


class _Export:
    def __init__(
        self,
        db: AsyncDatabase,
        spaces: Sequence[Keyspace],
        write: Callable[[bytes], object],
        *,
        secrets: bool,
    ) -> None:
        self.db = db
        self.matcher = Matcher(spaces, db.context)
        self.write = write
        self.secrets = secrets
        self.keys: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.examples: list[LeftOut] = []
        self._validators: dict[type[Key], Validator] = {}
        self._seen: set[int] = set()

    async def page(self, names: list[bytes]) -> None:
        groups, unknown = self.matcher.grouped([name for name in names if self._is_new(name)])
        for name in unknown:
            if self.matcher.belongs(name):
                older = self.matcher.old_place(name) or self.matcher.other_version(name)
                self.left_out[OLDER if older else UNDECLARED] += 1
        for known, found in groups.items():
            if not known.ours:
                continue
            for start in range(0, len(found), TOGETHER):
                await self._keys([known.key(name) for name in found[start : start + TOGETHER]])

    async def _keys(self, keys: Sequence[Key]) -> None:
        found = await self.db.run(gather_list(read_whole(key).attempt() for key in keys))
        for key, each in zip(keys, found, strict=True):
            if isinstance(each, ServerRefusedError) and each.reply.startswith("NOPERM"):
                self._failed(key, DENIED)
            elif isinstance(each, EngineError):
                raise each
            elif each is not None:
                self._key(key, each)

    def _key(self, key: Key, found: StoredKey | TooLarge | KeywrightError) -> None:
        template = key.declaration.template.source
        if isinstance(found, KeywrightError):
            if not isinstance(found, WrongTypeError):
                raise found
            self._failed(key, "another type than declared")
            return
        if isinstance(found, TooLarge):
            self._failed(key, "larger than an export takes")
            return
        validator = self._validators.get(type(key))
        if validator is None:
            validator = self._validators[type(key)] = Validator(type(key), self.db.context)
        now_ms = self.db.context.now_ms()
        problem = validator.problem(key, found) or validator.expiry_problem(key, found, now_ms)
        if problem is not None:
            self._failed(key, problem)
            return
        if validator.shows_secret(key, found) and not self.secrets:
            self.left_out[SECRET] += 1
            return
        value = validator.value(key, found)
        self.write(encode_line(line_of(key, found, variables=variables_of(key), value=value)))
        self.keys[template] += 1

    def _is_new(self, name: bytes) -> bool:
        digest = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True

    def _failed(self, key: Key, reason: str) -> None:
        self.left_out[reason] += 1
        if len(self.examples) < KEPT:
            masked = masked_name(key.declaration.template.source, self.db.context.name(key))
            self.examples.append(LeftOut(masked, reason))


async def export_keys(
    db: AsyncDatabase,
    model: str,
    spaces: Sequence[Keyspace],
    write: Callable[[bytes], object],
    *,
    with_secrets: bool = False,
    pace: Pace = GENTLE,
    on_progress: OnProgress | None = None,
) -> Exported:
    """Write the keys of some keyspaces, line by line, and return how many there were.

    Left out are keys that are not stored as declared, larger than 32 MiB or unknown and, without
    `with_secrets`, keys that hold a secret in clear. Sealed values are exported as they are stored.
    """
    leads = {space.name: db.context.prefixes[space].decode("utf-8", "backslashreplace") for space in spaces}
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    write(encode_line(FileHeader("export", FORMAT, model, made_at, leads, with_secrets)))
    export = _Export(db, spaces, write, secrets=with_secrets)
    async for names in name_pages(db, pace=pace, on_progress=on_progress):
        await export.page(names)
    write(encode_line(FileEnd(export.keys.total(), dict(export.left_out))))
    return Exported(dict(sorted(export.keys.items())), dict(export.left_out), export.examples)
