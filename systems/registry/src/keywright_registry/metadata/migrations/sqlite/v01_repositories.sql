-- Times are microseconds since 1970.
CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE TABLE repositories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id),
    name TEXT NOT NULL,
    path TEXT NOT NULL CHECK (length(path) <= 255),
    parent_id INTEGER REFERENCES repositories (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER,
    deleted_at INTEGER,
    size INTEGER CHECK (size >= 0),
    last_published_at INTEGER
);

CREATE UNIQUE INDEX repositories_living_path ON repositories (path) WHERE deleted_at IS NULL;

CREATE INDEX repositories_parent ON repositories (parent_id) WHERE deleted_at IS NULL;
