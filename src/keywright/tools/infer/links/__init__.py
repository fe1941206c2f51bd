"""References and relations between inferred keys, with the evidence for each."""

from keywright.tools.infer.links.declared import Existing, declared_keys, existing_links
from keywright.tools.infer.links.search import find_links
from keywright.tools.infer.links.statements import Link

__all__ = ["Existing", "Link", "declared_keys", "existing_links", "find_links"]
