CREATE TABLE repository_counts (
    path TEXT PRIMARY KEY,
    pulls INTEGER NOT NULL DEFAULT 0,
    pushes INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE count_batches (
    batch TEXT PRIMARY KEY,
    added_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX count_batches_age ON count_batches (added_at);
