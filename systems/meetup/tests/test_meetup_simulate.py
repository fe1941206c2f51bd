"""`keywright meetup simulate`: a bot works with the simulated town, and people use it from a shell."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from keywright.errors import UsageError
from keywright.testing import Raw, free_port, wait_until
from keywright_meetup.commands.meetup import meetup
from keywright_meetup.simulator.browser import link_accounts
from service_processes import ServiceProcess, launched

PAGE = (Path(__file__).parents[1] / "docs" / "guide.md").read_text()
AUTHORIZATION = {
    "client_id": "simulated-client",
    "response_type": "code",
    "code_challenge_method": "S256",
    "code_challenge": "x",
}


@dataclass
class Running:
    """The simulators in a process, and what they printed."""

    process: ServiceProcess
    variables: dict[str, str]
    controls: str

    def use(self, **form: str) -> httpx.Response:
        return httpx.post(self.controls, data=form, timeout=30)


def pasted(program: str) -> list[list[str]]:
    """Return the arguments of the lines of the guide that run a program."""
    section = PAGE.split("### Try it without accounts\n")[1].split("\n### ")[0]
    lines = re.findall(rf"^{program} ([^|\n]*)", section, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[Running]:
    printed, pages = tmp_path / "town.env", f"127.0.0.1:{free_port()}"
    command = pasted("keywright")[0]
    assert command == ["meetup", "simulate", "--port", "8100"]
    # The ports of the page may be taken on this machine.
    command[-1] = str(free_port())
    with launched(*command, "--pages", pages, variables={}, log=printed) as process:
        wait_until(lambda: "# see the guild" in printed.read_text(), "addresses that are printed")
        text = printed.read_text()
        variables = dict(re.findall(r"^export (\w+)=(.*)$", text, re.MULTILINE))
        found = re.search(r"# see the guild: curl (\S+)", text)
        assert found is not None
        yield Running(process, variables, found[1])


def test_a_bot_with_the_printed_variables_syncs_and_answers_commands(
    simulated: Running, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    assert "Run keywright meetup register" in simulated.use(**{"as": "Ada", "command": "link"}).text
    with ExitStack() as running:
        variables = {**simulated.variables, "REDIS_URL": redis_url}
        bot = running.enter_context(
            launched("meetup", "serve", variables=variables, log=tmp_path / "bot.log")
        )
        pages = simulated.variables["PAGES_URL"]
        wait_until(lambda: _answers(f"{pages}/ready"), "a bot that is ready")
        assert pasted("keywright")[1:] == [
            ["meetup", "serve", "--embedded", "./town-data"],
            ["meetup", "register"],
        ]
        assert CliRunner().invoke(meetup, ["register"], env=variables).exit_code == 0

        reply = simulated.use(**{"as": "Ada", "command": "link"})
        (link,) = re.findall(r"^Link my accounts: (\S+)$", reply.text, re.MULTILINE)
        consent = httpx.get(simulated.variables["MEETUP_AUTHORIZE_URL"], params=AUTHORIZATION)
        (member,) = re.findall(r'<option value="(\d+)">Ada</option>', consent.text)
        assert "Your accounts are linked" in link_accounts(link, int(member)).text
        assert "Meetup member" in simulated.use(**{"as": "Ada", "command": "whoami"}).text

        def channels() -> list[str]:
            return [each["name"] for each in httpx.get(simulated.controls).json()["channels"]]

        wait_until(lambda: "dragon-hunt" in channels(), "the channel of a series")
        unknown = simulated.use(**{"as": "Nobody", "command": "link"})
        assert unknown.status_code == 400
        assert "There is no member 'Nobody'. There are: " in unknown.text
        refused = simulated.use(**{"as": "Bela", "command": "end", "channel": "dragon-hunt"})
        assert "You are not a host of" in refused.text
        replies = []
        for *arguments, url in pasted("curl"):
            assert url == "http://127.0.0.1:8100/simulated"
            form = dict(each.split("=") for each in arguments if each != "-d")
            replies += [simulated.use(**form).text] if form else []
        assert "You are linked to" in replies[0]
        assert "is kept until" in replies[1]
        assert bot.stop() == 0
    assert len(raw("SMEMBERS", "meetup_events")) == 5


def test_sigterm_ends_it(simulated: Running) -> None:
    assert simulated.process.stop() == 0


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(meetup, ["simulate", "--port", str(taken.getsockname()[1])])
    assert isinstance(done.exception, UsageError)
    assert "Choose another port" in str(done.exception)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False
