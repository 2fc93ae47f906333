-- The truth. Everything else in the index folder can be rebuilt from these tables.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sources (
    name TEXT PRIMARY KEY,
    root TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    source       TEXT NOT NULL,
    path         TEXT NOT NULL,
    title        TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    chunk_count  INTEGER NOT NULL,
    size_bytes   INTEGER NOT NULL,
    modified_ns  INTEGER NOT NULL,
    indexed_at   TEXT NOT NULL,
    meta         TEXT NOT NULL
);
CREATE INDEX documents_by_source ON documents (source, path);

-- A replaced chunk stays readable (died is set) until its replacement is searchable; then its row goes.
CREATE TABLE chunks (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice; the order of the derived rows
    id           INTEGER NOT NULL,                   -- the chunk id as a signed 64-bit number
    document     INTEGER NOT NULL,
    searchable   INTEGER NOT NULL,                   -- 1 for level "chunk"
    content_hash BLOB NOT NULL,
    died         INTEGER,                            -- the change that ended it
    crc          INTEGER NOT NULL,                   -- of body
    body         BLOB NOT NULL,                      -- the chunk as JSON, without fields that are as by default
    connections  INTEGER                             -- chunks that edges tie it to; NULL where the body knows
);
CREATE INDEX chunks_by_id ON chunks (id);
CREATE INDEX chunks_by_document ON chunks (document);
CREATE INDEX chunks_dead ON chunks (died) WHERE died IS NOT NULL;

-- Searchable chunks that died since the derived rows were last compacted.
CREATE TABLE tombstones (
    key INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
);
CREATE INDEX tombstones_by_seq ON tombstones (seq);  -- a reader asks for those of the last changes

-- Here and below the key's columns stand first, in its order: the integrity check of SQLite 3.40 sees NULLs otherwise.
CREATE TABLE edges (
    source      INTEGER NOT NULL,
    target      INTEGER NOT NULL,
    relation    TEXT NOT NULL,
    document    INTEGER NOT NULL,
    weight      REAL NOT NULL,
    description TEXT NOT NULL,
    maker       TEXT NOT NULL,                       -- "" for the reader, else who linked it
    PRIMARY KEY (source, target, relation, document)
) WITHOUT ROWID;
CREATE INDEX edges_by_target ON edges (target);
CREATE INDEX edges_by_document ON edges (document);

-- What chunks are known by, so that other documents can be linked to them.
CREATE TABLE names (
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    chunk    INTEGER NOT NULL,
    document INTEGER NOT NULL
);
CREATE INDEX names_by_name ON names (kind, name COLLATE NOCASE);
CREATE INDEX names_by_document ON names (document);

-- Names that came or went, until the linker has seen to those who speak of them.
CREATE TABLE renamed (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- Which documents a maker of edges has done.
CREATE TABLE linked (
    document INTEGER NOT NULL,
    maker    TEXT NOT NULL,
    PRIMARY KEY (document, maker)
) WITHOUT ROWID;

-- Distinct values of the filterable fields; derived rows hold the codes.
CREATE TABLE dictionary (
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    code  INTEGER NOT NULL,
    PRIMARY KEY (field, value)
) WITHOUT ROWID;
CREATE UNIQUE INDEX dictionary_by_code ON dictionary (field, code);

CREATE TABLE models (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    dimension INTEGER NOT NULL
);

-- Vectors by what was embedded: a renamed, moved or reverted file embeds nothing again.
CREATE TABLE embeddings (
    number       INTEGER PRIMARY KEY,
    model        INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    crc          INTEGER NOT NULL,
    vector       BLOB NOT NULL                       -- float32, little endian
);

-- Where the vector of a content is. The last vectors, up to 2,048, are not in it yet: hashes are spread evenly, and
-- each alone would change a page. meta has the number up to which it goes, as "embedded".
CREATE TABLE embedded (
    model        INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    number       INTEGER NOT NULL,
    PRIMARY KEY (model, content_hash)
) WITHOUT ROWID;

-- What people said of hits. The target is a chunk's id; its uri tells where it was, should the chunk change.
CREATE TABLE judgments (
    query      TEXT NOT NULL,
    target     TEXT NOT NULL,
    grade      REAL NOT NULL,
    source_uri TEXT NOT NULL,
    judged_at  TEXT NOT NULL,
    PRIMARY KEY (query, target)
) WITHOUT ROWID;

-- What the chunks of a document say of services: the graph is made from all of it when some of it changed.
CREATE TABLE service_facts (
    document INTEGER PRIMARY KEY,
    body     BLOB NOT NULL                           -- the facts as JSON
);

-- The service graph, replaced as a whole when the sources are linked.
CREATE TABLE services (
    name TEXT PRIMARY KEY,
    body BLOB NOT NULL                               -- the whole service as JSON
) WITHOUT ROWID;

CREATE TABLE service_edges (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    type   TEXT NOT NULL,
    body   BLOB NOT NULL,                            -- the whole edge as JSON
    PRIMARY KEY (source, target, type)
) WITHOUT ROWID;
