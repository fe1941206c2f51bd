"""A registry that notifies of pulls and pushes: `python -m soak.loads.registry URL LOG [--rate N]`.

As the registry does, it sends an envelope until it is acknowledged; a few are sent again though they were.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

from soak.loads.acknowledgements import AcknowledgementLog

MEDIA_TYPE = "application/vnd.docker.distribution.events.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
PATHS = ("acme/web", "acme/web/api", "acme/tools", "globex/base", "globex/worker", "initech/site")
AGAIN = 0.1
PAUSE_SECONDS = 0.3
TIMEOUT_SECONDS = 8.0


def event(chance: random.Random) -> dict[str, object]:
    pushed = chance.random() < 0.3
    return {
        "id": str(uuid.uuid4()),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "action": "push" if pushed else "pull",
        "target": {"mediaType": MANIFEST, "repository": chance.choice(PATHS)},
        "request": {"method": "PUT" if pushed else "GET"},
    }


def notify(url: str, log: AcknowledgementLog, rate: float, stopped: threading.Event) -> None:
    chance = random.Random()
    while not stopped.wait(1 / rate):
        events = [event(chance) for _ in range(chance.randint(1, 3))]
        items = [f"{each['action']}/{each['target']['repository']}/{each['id']}" for each in events]  # type: ignore[index]
        for item in items:
            log.begin("notify", item)
        body = json.dumps({"events": events}).encode()
        repeats = 1 if chance.random() < AGAIN else 0
        while not _sent(url, body, log) or repeats:
            repeats = max(0, repeats - 1)
            # Stopped: events without an acknowledgement remain without an outcome.
            if stopped.wait(PAUSE_SECONDS):
                return
        for item in items:
            log.ok("notify", item)


def _sent(url: str, body: bytes, log: AcknowledgementLog) -> bool:
    request = urllib.request.Request(f"{url}/notifications", body, {"Content-Type": MEDIA_TYPE})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
            reply.read()
            return True
    except urllib.error.HTTPError as error:
        log.doubt("send", "", f"HTTP {error.code}")
    except OSError as error:
        log.doubt("send", "", type(getattr(error, "reason", error)).__name__)
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("--rate", type=float, default=5.0, help="envelopes per second")
    options = parser.parse_args()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    print("ready", flush=True)
    notify(options.url, AcknowledgementLog(options.log), options.rate, stopped)


if __name__ == "__main__":
    main()
