"""Inferred modules for tests: parsed, compared with what a declaration may hold, and only then run."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import pickle
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

import keywright
from keywright import Keyspace, aconnect, check
from keywright.tools import Program
from keywright.tools.infer import Inference, infer, infer_server, inferred_model, names_in
from keywright.tools.infer.facts import Facts
from keywright.tools.pace import FULL_SPEED

LINKS = ("refers", "one_to_one", "many_to_one", "many_to_many", "index")
CALLS = {*keywright.__all__, "timedelta", "msgspec.field"}


def inferred_names(names: Iterable[bytes], *, show_ids: bool = False) -> Inference:
    """Infer from names as a file holds them."""
    return infer(names_in(io.BytesIO(b"".join(name + b"\n" for name in names))), show_ids=show_ids)


def inferred_server(url: str, programs: Mapping[str, Program] | None = None) -> Inference:
    async def run() -> Inference:
        async with aconnect(url) as db:
            return await infer_server(db, programs=programs, pace=FULL_SPEED)

    return asyncio.run(run())


def declared_space(inference: Inference) -> Keyspace:
    """Return the keyspace that a module declares. Fail if it holds anything but declarations."""
    refuse_code(inference.text)
    return inferred_model(inference).spaces[0]


def refuse_code(text: str) -> None:
    """Fail if a module holds anything but declarations. Functions of references only call types of ids."""
    tree = ast.parse(text)
    for node in [node for node in tree.body if _is_link(node)]:
        call = node.value  # type: ignore[attr-defined]
        for argument in call.args:
            _refuse_code_in_ids(argument)
        assert all(isinstance(each.value, ast.Name | ast.Constant) for each in call.keywords)
        tree.body.remove(node)
    for node in tree.body:
        assert isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.ClassDef | ast.Expr), ast.dump(
            node
        )
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for each in inside:
            assert isinstance(each, ast.AnnAssign | ast.Import | ast.ImportFrom | ast.Assign | ast.Expr)
            if isinstance(each, ast.Expr):
                assert isinstance(each.value, ast.Constant), ast.dump(each)
                assert isinstance(each.value.value, str)
    for found in ast.walk(tree):
        assert not isinstance(found, ast.Lambda | ast.Await | ast.JoinedStr | ast.FunctionDef)
        if isinstance(found, ast.Call):
            assert ast.unparse(found.func) in CALLS, ast.unparse(found)
        if isinstance(found, ast.Attribute):
            assert ast.unparse(found) in ("msgspec.Struct", "msgspec.field")


def _is_link(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in LINKS
    )


def _refuse_code_in_ids(argument: ast.expr) -> None:
    for found in ast.walk(argument):
        assert not isinstance(found, ast.Await | ast.JoinedStr | ast.NamedExpr | ast.Yield | ast.Starred)
        if isinstance(found, ast.Call):
            assert ast.unparse(found.func) in ("int", "str", "UUID"), ast.unparse(found)
        if isinstance(found, ast.Attribute):
            assert not found.attr.startswith("_")


def with_short_classes(text: str) -> str:
    """Return a module with the arguments of each class on one line."""
    return text.replace("(\n    ", "(").replace(",\n    ", ", ").replace(",\n):", "):")


def unproved(space: Keyspace) -> list[str]:
    return [str(finding) for finding in check(space) if finding.severity == "error"]


HOSTILE = (
    b'"""\nimport os; os.abort()\n"""',
    b"'); import os; os.abort() #",
    b"\\x41\\",
    b"<user>:[x]:{y}",
    b"user:\n__import__('os')",
    b"class Evil: pass",
    b"\xe2\x80\xaeevil",
    b"{}{}{}",
    b"\x00" * 20,
    b":" * 50,
    b"%s%n{0.__class__}${x}`id`",
    b"\xff\xfe\xc3\x28",
    b"\xe2\x81\xa6\xe2\x80\xa8# noqa",
    b"'''\r\n\x1b[2J",
    b"word" * 200,
)
"""Texts that a module must hold as data, if at all."""


def hostile_names(count: int) -> Iterator[bytes]:
    """Yield names of pieces that are hostile, usual, or random bytes."""
    noise = random.Random(18)
    pieces = (*HOSTILE, b"user", b"job", b":", b"/", b".", b"|", b"-", b"17")
    for _ in range(count):
        yield b"".join(
            noise.choice(pieces) if noise.random() < 0.5 else noise.randbytes(noise.randrange(1, 8))
            for _ in range(noise.randrange(1, 6))
        )


BOMBS = (
    zlib.compress(bytes(1 << 24)),
    b"[" * 60_000,
    b"\xdd\xff\xff\xff\xff",
    b"\x80\x04" + b"(" * 60_000 + b".",
    b"cos\nsystem\n(S'true'\ntR.",
)
"""Values that are large, deep or dangerous for programs that unpack or unpickle them."""
_KINDS = ("string", "hash", "set", "zset", "list", "stream", "ReJSON-RL", "a\nb")


def hostile_keys(count: int, values: int, seed: int = 18) -> Iterator[tuple[bytes, Facts]]:
    """Yield keys with so many hostile values each, of all types."""
    noise = random.Random(seed)
    for name in hostile_names(count):
        kind = noise.choice(_KINDS)
        held = tuple(_hostile_value(noise) for _ in range(values))
        scores = tuple(noise.choice((b"inf", b"-1e308", b"1795000000", b"nan")) for _ in held)
        if kind in ("hash", "stream"):
            entries = zip(held[::2], held[1::2], strict=False)
            fields = tuple(dict([entry]) for entry in entries) if kind == "stream" else (dict(entries),)
            yield name, Facts(kind, None, (), (), fields, (noise.choice(HOSTILE),), len(held))
        else:
            ttl = noise.choice((None, 0, 1, 2**62))
            yield name, Facts(kind, ttl, held[: 1 if kind == "string" else None], scores)


def _hostile_value(noise: random.Random) -> bytes:
    text = noise.choice(HOSTILE)
    match noise.randrange(12):
        case 0:
            return text
        case 1:
            return noise.randbytes(noise.randrange(40))
        case 2:
            return json.dumps({text.decode("latin-1"): [1, {text.decode("latin-1"): None}]}).encode()
        case 3:
            return msgspec.msgpack.encode({text: text})
        case 4:
            return zlib.compress(text)
        case 5:
            return pickle.dumps({text.decode("latin-1"): text})
        case 6:
            return noise.choice((b"1e999", b"-0", b"9" * 40, b"1795000000.5", b"nan", b"0x10", b"\xd9\xa1"))
        case 7:
            return noise.choice(BOMBS) if noise.random() < 0.01 else b"cos\nabort\n(tR."
        case 8:
            return b'O:4:"Evil":1:{s:3:"' + text + b'";i:1;}'
        case 9:
            return b"\xac\xed\x00\x05sr\x00\x20" + text
        case 10:
            return b"\x08\x96\x01\x12" + bytes([len(text) & 0x7F]) + text
    return b"%d" % noise.getrandbits(noise.randrange(1, 70))
