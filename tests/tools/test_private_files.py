"""Undo files, plans and saved progress: for their owner only, and never those of someone else."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keywright.errors import UsageError
from keywright.tools.audit.checkpoint import Checkpoint
from keywright.tools.audit.tally import Tally
from keywright.tools.migrate import Bookmark
from keywright.tools.private_files import open_private, overwrite_private, read_private
from keywright.tools.repair import read_plan
from keywright.tools.repair.undo import Back, UndoFile


def _undo(path: Path) -> None:
    file = UndoFile(path)
    file._keep((Back([b"PERSIST", b"a"], b"a", "KW301"),))
    file.close()


def _plan(path: Path) -> None:
    overwrite_private(path).close()


def _bookmark(path: Path) -> None:
    bookmark = Bookmark("sweep", path)
    bookmark.save()


def _checkpoint(path: Path) -> None:
    Checkpoint(path, ["a"], {}).save("node", 1, Tally())


WRITERS = [_undo, _plan, _bookmark, _checkpoint]


@pytest.mark.parametrize("write", WRITERS)
def test_a_file_that_everyone_may_read_becomes_private(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o666)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("write", WRITERS)
def test_a_symbolic_link_is_not_followed(tmp_path: Path, write: Callable[[Path], None]) -> None:
    target = tmp_path / "target"
    for link in ("file", "file.new"):
        (tmp_path / link).symlink_to(target)
    with pytest.raises(UsageError, match="is a symbolic link"):
        write(tmp_path / "file")
    assert not target.exists()


@pytest.mark.parametrize("read", [read_private, read_plan, lambda path: Bookmark.at(path, "sweep")])
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_change_is_not_read(
    tmp_path: Path, read: Callable[[Path], Any], mode: int
) -> None:
    path = tmp_path / "file"
    _bookmark(path)
    path.chmod(mode)
    with pytest.raises(UsageError, match="can be changed by other users"):
        read(path)


def test_a_folder_or_a_pipe_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        open_private(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        read_private(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("use", [*WRITERS[:2], read_private])
def test_a_file_of_another_user_is_refused(tmp_path: Path, use: Callable[[Path], Any]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"theirs")
    os.chown(path, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to another user"):
        use(path)
    assert path.read_bytes() == b"theirs"
