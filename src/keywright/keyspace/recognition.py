"""Recognition of older shapes of stored values, and of former names of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from keywright.keyspace.key import Key
    from keywright.keyspace.versions.upgrades import Upgrade

__all__ = ["FormerPlace", "former_places", "older_shape"]


def older_shape(upgrades: Iterable[Upgrade], opened: Any) -> Upgrade | None:
    """Return the upgrade in place that applies to a stored form, unsealed; None if it is up to date."""
    if not opened:
        return None
    return next((each for each in upgrades if each.moved_from is None and each.applies(opened)), None)


class FormerPlace(NamedTuple):
    """A template under which keys of a class were stored: renamed since, or moved by an upgrade."""

    former: type[Key]
    present: type[Key]
    version: str
    upgrade: Upgrade | None = None
    """The upgrade that converts the value on its way; None where only the name changed."""

    def former_key(self, key: Key) -> Key:
        """Return the former key of a present one."""
        if self.upgrade is None or self.upgrade.moved_from is None:
            return self.former.made(key._values)
        return self.upgrade.moved_from(key)

    def present_key(self, former: Key) -> Key | None:
        """Return the present key of a former one; None if the variables do not determine it."""
        if self.upgrade is None:
            return self.present.made(former._values)
        variables = former._template.variables
        if set(variables) != set(self.present._template.variables):
            return None
        key = self.present(**{name: getattr(former, name) for name in variables})
        return key if self.former_key(key) == former else None


def former_places(kind: type[Key]) -> Iterator[FormerPlace]:
    """Yield every former place of a class, the renamed ones first."""
    for former in kind._former:
        yield FormerPlace(former, kind, former._template.source)
    for upgrade in getattr(kind, "_upgrades", ()):
        if upgrade.moved_from is not None:
            # A function does not say where it points; the class of what it gives for some key does.
            samples = {name: alphabet.samples[0] for name, alphabet in kind._template.alphabets.items()}
            yield FormerPlace(type(upgrade.moved_from(kind(**samples))), kind, upgrade.version, upgrade)
