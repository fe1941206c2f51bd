CREATE TABLE repository_counts (
    path text COLLATE "C" NOT NULL PRIMARY KEY,
    pulls bigint NOT NULL DEFAULT 0,
    pushes bigint NOT NULL DEFAULT 0
);

CREATE TABLE count_batches (
    batch text COLLATE "C" NOT NULL PRIMARY KEY,
    added_at timestamptz NOT NULL
);

CREATE INDEX count_batches_age ON count_batches (added_at);
