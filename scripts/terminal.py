"""Take the picture docs/images/terminal.svg: a keyspace that exists is inferred, proved and audited.

`make pictures` runs it. The commands run on a private server; look at the picture before you commit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from keywright import connect, gather, raw
from keywright.testing import RedisServer

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "terminal.svg"
COLUMNS = 84
STEPS = (
    ("infer", "keywright infer -o schema.py"),
    ("check", "keywright check schema:inferred | tail -n 1"),
    ("audit", "keywright audit schema:inferred"),
)
THEME = TerminalTheme(
    (27, 30, 38), (214, 219, 230), [(27, 30, 38), (240, 113, 120), (137, 202, 120), (229, 192, 123),
    (97, 175, 239), (198, 120, 221), (86, 182, 194), (214, 219, 230)], [(120, 128, 145)] * 8,
)  # fmt: skip
# Without the web font of rich's own template: the reader's monospace font, in the given widths.
TEMPLATE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>keywright infer, check and audit in a terminal</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
 font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with RedisServer(tcp=True) as server, tempfile.TemporaryDirectory() as folder:
        fill(server.tcp_url)
        for name, command in STEPS:
            if name == "audit":
                damage(server.tcp_url)
            console.print(Text("$ ", style="green"), Text(command, style="bold"), sep="")
            printed = run(command, Path(folder), server.tcp_url)
            console.print(Text(printed.replace(f"127.0.0.1:{server.port}", "localhost:6379").rstrip()))
            console.print()
    console.save_svg(str(PICTURE), title="keywright", theme=THEME, code_format=TEMPLATE, unique_id="terminal")
    lines = (line.rstrip() for line in PICTURE.read_text("utf-8").splitlines())
    PICTURE.write_text("\n".join(lines) + "\n", "utf-8")


def fill(url: str) -> None:
    """Write what an application without a declaration would."""
    with connect(url) as db:
        for user in range(1, 301):
            session = f"session:{user:08x}-7dec-41d0-a765-00a0c91e6bf6"
            state = b'{"user": %d, "language": "en"}' % user
            db.run(
                gather(
                    raw(b"HSET", f"user:{user}", b"name", f"User {user}", b"credit", str(user * 7)),
                    raw(b"SADD", f"user:{user}:posts", str(user * 10), str(user * 10 + 1)),
                    raw(b"SET", session, state, b"EX", str(1800 - user)),
                )
            )


def damage(url: str) -> None:
    """Write what a bug would: a session that never expires, a user of another type, a misspelt key."""
    with connect(url) as db:
        db.run(raw(b"PERSIST", "session:00000007-7dec-41d0-a765-00a0c91e6bf6"))
        db.run(gather(raw(b"DEL", "user:9"), raw(b"SET", "user:9", b"gone")))
        db.run(raw(b"SADD", "users:12:posts", b"120"))


def run(command: str, folder: Path, url: str) -> str:
    program = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "REDIS_URL": url,
            "COLUMNS": str(COLUMNS),
            "PATH": f"{program}:{os.environ['PATH']}",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


if __name__ == "__main__":
    main()
