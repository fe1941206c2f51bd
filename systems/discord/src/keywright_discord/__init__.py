"""Discord: what a bot sees of it, kept in Redis in one of two layouts, `drc` and `spectacles`."""
