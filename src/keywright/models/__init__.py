"""The five published data models: strangers to each other, each on the keyspace and the engine alone."""
