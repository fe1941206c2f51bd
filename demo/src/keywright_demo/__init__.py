"""Everything at once on one machine: servers, services, traffic and explorer, for `keywright up`."""
