"""`keywright shell`: a prompt with the model loaded, which only reads unless it may write."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cli_spaces as spaces
from invoking import Invoke
from keywright import Database, Effect, Secret, Settings, aconnect, atomic, connect, gather, raw
from keywright.errors import UsageError
from keywright.testing import Raw

KINDS = "cli_spaces:kinds"
ROOT = Path(__file__).parents[2]


def test_one_line_is_run_and_its_value_printed(invoke: Invoke, redis_url: str) -> None:
    with connect(redis_url) as db:
        db.run(gather(spaces.Total().add(2), spaces.Pets("a").put(spaces.Cat("cat", 9))))
        db.run(spaces.Tokens().add(Secret("hunter2")))
    given = ("shell", KINDS, "--url", redis_url, "-c")
    assert invoke(*given, "run(Total().get())").stdout == "2\n"
    assert invoke(*given, "x = run(Total().get(), Pets('a').get())\nx[1].lives").stdout == "9\n"
    assert invoke(*given, "keys(Pets)").stdout == "[Pets(pet='a')]\n"
    assert invoke(*given, "look(Tokens())").stdout.split() == ["[", '"(secret)"', "]"]
    assert "hunter2" not in invoke(*given, "run(Tokens().members())").output


@pytest.mark.parametrize(
    "call",
    [
        "Total().add(1)",
        "Total().delete()",
        "atomic(Total().get(), Total().add(1))",
        "raw('SET', Total(), '9')",
        "raw('SET', Total(), '9', effect=Effect.READ)",
        "raw('CONFIG', 'SET', 'maxmemory', '0', effect=Effect.READ)",
        "raw('FLUSHALL', effect=Effect.READ)",
        "Session().get()",
    ],
)
def test_without_write_nothing_that_may_write_is_sent(
    invoke: Invoke, redis_url: str, raw: Raw, call: str
) -> None:
    raw("SET", "kinds:total", "1")
    raw("SET", "kinds:session", "ada")
    given = ("shell", KINDS, "--url", redis_url, "-c", f"run({call})")
    done = invoke(*given)
    assert (done.exit_code, "may write" in done.stderr) == (2, True)
    assert (raw("GET", "kinds:total"), raw("PTTL", "kinds:session")) == (b"1", -1)


def test_with_write_it_is_sent(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    assert invoke("shell", KINDS, "--url", redis_url, "--write", "-c", "run(Total().add(3))").stdout == "3\n"
    assert raw("GET", "kinds:total") == b"3"


@pytest.mark.anyio
async def test_databases_of_both_engines_may_be_opened_for_reading_only(redis_url: str) -> None:
    reading = [
        spaces.Total().get(),
        atomic(spaces.Total().get(), spaces.Total().exists()),
        raw("PING", effect=Effect.READ),
    ]
    writing = [spaces.Total().add(1), gather(spaces.Total().get(), spaces.Total().add(1))]
    settings = Settings(read_only=True)
    with connect(redis_url, settings=settings) as db:
        assert isinstance(db, Database)
        for call in reading:
            db.run(call)
        for call in writing:
            with pytest.raises(UsageError, match="open for reading only"):
                db.run(call)
        assert list(db.scan(spaces.Pets)) == []
    async with aconnect(redis_url, settings=settings) as adb:
        for call in reading:
            await adb.run(call)
        for call in writing:
            with pytest.raises(UsageError, match="open for reading only"):
                await adb.run(call)


def test_an_error_of_python_is_that_of_the_line(invoke: Invoke, redis_url: str) -> None:
    done = invoke("shell", KINDS, "--url", redis_url, "-c", "1/0")
    assert isinstance(done.exception, ZeroDivisionError)
    done = invoke("shell", KINDS, "--url", redis_url, "-c", "1 +")
    assert (done.exit_code, "is not Python" in done.stderr) == (2, True)


class Prompt:
    """A shell on a terminal of its own."""

    def __init__(self, url: str, *more: str) -> None:
        self.terminal, theirs = pty.openpty()
        command = [sys.executable, "-m", "keywright", "shell", KINDS, "--url", url, *more]
        environment = {**os.environ, "TERM": "dumb", "PYTHON_BASIC_REPL": "1"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), environment.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, text: str) -> str:
        """Return what is shown until a text is, in half a minute at most."""
        shown = b""
        while text.encode() not in shown:
            ready, _, _ = select.select([self.terminal], [], [], 30)
            assert ready, shown.decode()
            shown += os.read(self.terminal, 65536)
        return shown.decode()

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.fixture
def prompt(redis_url: str) -> Iterator[Prompt]:
    opened = Prompt(redis_url)
    yield opened
    opened.close()


def test_the_prompt_says_where_it_is_and_completes_names(prompt: Prompt, redis_url: str, raw: Raw) -> None:
    raw("SET", "kinds:total", "41")
    banner = prompt.until(">>> ")
    assert "kinds on " in banner
    assert "prefix: 'kinds:'. Reads only" in banner
    password = redis_url.partition("://:")[2].partition("@")[0]
    assert password
    assert password not in banner
    prompt.type("run(Tot\t")
    prompt.until("run(Total")
    prompt.type("\x15run(Total().get()) + 1\n")
    prompt.until("42")
    prompt.type("run(Total().add(1))\n")
    shown = prompt.until("Nothing was sent.")
    assert "Traceback" not in shown
    prompt.type("exit()\n")
    assert prompt.process.wait(30) == 0
