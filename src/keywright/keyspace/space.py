"""A keyspace: the keys, relations and rules that belong together, and their defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from keywright.errors import DeclarationError, UnknownKeyError
from keywright.keyspace.codecs import Keyring
from keywright.keyspace.context import Binding, Context, require_number
from keywright.keyspace.misuse import explained, explained_constructor, raise_explained
from keywright.keyspace.template import not_a_name

if TYPE_CHECKING:
    from keywright.keyspace.cached_reads import Cached
    from keywright.keyspace.channel import Channel
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.invariants import Invariant
    from keywright.keyspace.key import Key
    from keywright.keyspace.references import Reference
    from keywright.keyspace.relations import Link


@explained_constructor
class Keyspace:
    """A named set of key declarations.

    `prefix` and `version` are what key names begin with (`<prefix>:<version>:<template>`); both are
    defaults that `bind` overrides when a database is opened. A prefix may hold colons, and may hold
    a hash tag, which then keeps the whole keyspace in one slot of a cluster. `replaced_by` is the keyspace
    that took over the names of this one, which only describes older data: both may make the same name.
    `database` is the number of the database that has the keys; a connection to another one refuses them.
    """

    def __init__(
        self,
        name: str,
        description: str,
        *,
        prefix: str | None = None,
        version: str | None = None,
        replaced_by: Keyspace | None = None,
        database: int | None = None,
    ) -> None:
        if not name:
            raise DeclarationError("Keyspace", "has no name", "Give it one: Keyspace('orders', '…').")
        self.name = name
        self.description = description
        self.prefix = prefix
        self.version = version
        self.replaced_by = replaced_by
        self.database = require_number(database, name)
        self.keys: list[type[Key]] = []
        self.links: list[Link] = []
        self.references: list[Reference] = []
        self.invariants: list[Invariant] = []
        self.channels: list[type[Channel[Any]]] = []

    @explained
    def bind(
        self,
        *,
        prefix: str | None = None,
        version: str | None = None,
        expiry: Mapping[type[Key], Expiry | None] | None = None,
        keyring: Keyring | None = None,
        database: int | None = None,
        cached: Mapping[type[Key], Cached] | None = None,
    ) -> Binding:
        """Bind this keyspace to a prefix, a version, expiries, a keyring and the number of a database.

        `cached` says of which classes reads are cached: `{Profile: True, Price: timedelta(seconds=10)}`.
        Pass the result to `connect`. What is not given stays as declared.
        """
        return Binding(
            self,
            prefix=prefix,
            version=version,
            expiry=expiry,
            keyring=keyring,
            database=database,
            cached=cached,
        )

    def parse(self, name: bytes, context: Context | None = None) -> Key:
        """Return the key of this name. Raise UnknownKeyError if no template matches."""
        key = self.find(name, context)
        if key is None:
            lead = (context or Context()).prefixes[self]
            # Outside the prefix nothing is near: the error then points to the prefix.
            near = self._nearest(name[len(lead) :]) if name.startswith(lead) else None
            raise UnknownKeyError(name, self.name, near)
        return key

    def find(self, name: bytes, context: Context | None = None) -> Key | None:
        """Return the key of this name, or None."""
        try:
            lead = (context or Context()).prefixes[self]
            if not name.startswith(lead):
                return None
        except (AttributeError, TypeError) as error:
            if not isinstance(name, bytes):
                raise not_a_name(name) from error
            raise_explained(Keyspace.find, (self, name, context), {}, error)
        rest = name[len(lead) :]
        return next((key for kind in self.keys if (key := kind.parse(rest)) is not None), None)

    def __iter__(self) -> Iterator[type[Key]]:
        return iter(self.keys)

    def __repr__(self) -> str:
        return f"Keyspace({self.name!r}, {len(self.keys)} keys)"

    def _nearest(self, name: bytes) -> str | None:
        """Return the template with the longest literal prefix in common with a name."""

        def shared(kind: type[Key]) -> int:
            prefix = kind._template.literal_prefix
            return next(
                (i for i, (a, b) in enumerate(zip(prefix, name, strict=False)) if a != b),
                min(len(prefix), len(name)),
            )

        best = max(self.keys, key=shared, default=None)
        return best._template.source if best is not None and shared(best) else None
