"""The resident memory of processes over time, and whether it grows."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Growth", "MemorySampler", "growth"]

EVERY_SECONDS = 5.0
WARM_UP_SECONDS = 90.0
LEAST_SECONDS = 240.0
ALLOWED_MB = 8.0
ALLOWED_FRACTION = 0.10
_MB = 1024.0


class Growth(NamedTuple):
    """The memory of one process: the size after the warm-up, and the trend over the rest of its life."""

    name: str
    minutes: float
    begin_mb: float
    grown_mb: float

    @property
    def is_flat(self) -> bool:
        return self.grown_mb <= ALLOWED_MB + ALLOWED_FRACTION * self.begin_mb


class MemorySampler:
    """Samples named processes in a thread, until stop()."""

    def __init__(self, processes: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self._processes = processes
        self._samples: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> list[Growth]:
        """Stop sampling. Return the growth of each process that lived long enough to show one."""
        self._stopped.set()
        self._thread.join()
        grown = []
        for (name, _), samples in self._samples.items():
            late = [(at, size) for at, size in samples if at >= samples[0][0] + WARM_UP_SECONDS]
            if late and late[-1][0] - late[0][0] >= LEAST_SECONDS:
                grown.append(growth(name, late))
        return grown

    def _sample(self) -> None:
        while not self._stopped.wait(EVERY_SECONDS):
            for name, pid in self._processes():
                if (size := _resident_mb(pid)) is not None:
                    self._samples[name, pid].append((time.monotonic(), size))


def growth(name: str, samples: list[tuple[float, float]]) -> Growth:
    """Fit a line by least squares: single peaks do not count as growth."""
    count, seconds = len(samples), samples[-1][0] - samples[0][0]
    middle_at = sum(at for at, _ in samples) / count
    middle = sum(size for _, size in samples) / count
    spread = sum((at - middle_at) ** 2 for at, _ in samples)
    slope = sum((at - middle_at) * (size - middle) for at, size in samples) / spread
    begin = middle - slope * (middle_at - samples[0][0])
    return Growth(name, round(seconds / 60, 1), round(begin, 1), round(slope * seconds, 1))


def _resident_mb(pid: int) -> float | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return int(line.split()[1]) / _MB if line else None
