"""The soak: all systems under load while servers, connections and processes fail, and a judge at the end."""
