"""The wheels of the library and of every system, installed once for all workers of a run."""

from __future__ import annotations

import fcntl

import pytest

pytest.register_assert_rewrite("end_to_end.installation")

from end_to_end.installation import SYSTEMS, Installation  # noqa: E402
from environments import ROOT, Environment, build_wheels  # noqa: E402


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Installation:
    """Return the installation. The first worker makes it, the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "end_to_end"
    shared.mkdir(exist_ok=True)
    folder, done = shared / "environment", shared / "done"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            sources = [ROOT / "systems" / name for name in SYSTEMS]
            wheels = build_wheels(shared / "build", ROOT, *sources)
            extras = {"keywright": "cli", "keywright-messaging": "amqp", "keywright-registry": "postgresql"}
            named = [f"{path}[{extras[name]}]" if name in extras else path for name, path in wheels.items()]
            Environment.create(folder, *named)
            done.touch()
    return Installation(Environment(folder))
