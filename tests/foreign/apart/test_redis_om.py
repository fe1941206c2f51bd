"""redis-om 1.2: hash models that are saved, changed, deleted, and of which some expire."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from foreign.audits import Fault, audited
from foreign.conformance import Conformance
from foreign.programs import APART
from foreign.projects import ENVIRONMENTS
from keywright.testing import RedisServer

PROJECT = APART["redis-om"]

FAULTS = [
    Fault(
        "a product without a price",
        "KW203",
        "missing-member",
        lambda client: client.hset(
            "shop:product:SKU-9999",
            mapping={"pk": "01M7JTB44JP2FS00QQ9HXB0ER8", "sku": "SKU-9999", "title": "x", "stock": 1},
        ),
    ),
    Fault(
        "a visit that is a list",
        "KW201",
        "wrong-type",
        lambda client: client.rpush("shop:visit:at:01M7JTB44JP2FS00QQ9HXB0ER8", "x"),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("shop:products", "x")),
]


class TestRedisOm(Conformance):
    """redis-om with models that are declared member by member."""

    claimed = 0.1  # models that are not named after their class are of an application that has none of these

    @pytest.mark.usefixtures("reports")
    def test_the_catalogue_matches_every_model(self, server: RedisServer) -> None:
        report = audited("redis-om", server)
        assert report["findings"] == []
        used = {row["template"] for row in report["templates"] if row["keys"]}
        assert used == {"<application>:<model>:<pk>"}


def test_the_program_of_the_first_page_prints_what_the_page_shows(redis_url: str) -> None:
    """docs/index.md shows it beside the same with Keywright."""
    program = Path(__file__).parents[3] / "docs" / "examples" / "with_redis_om.py"
    done = subprocess.run(
        [ENVIRONMENTS / "redis8" / "bin" / "python", program],
        env={**os.environ, "REDIS_OM_URL": redis_url},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "ben set() {'b1'}\n"
