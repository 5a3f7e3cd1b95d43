-- The lineage of one root, in the terms of W3C PROV. No text of logs or items stands here: it is read
-- from the files. Hashes are lower-case hex, times RFC 3339 in UTC, paths relative to the root.

-- One pass of the daemon or of a command: what `undo` takes back.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    cause   TEXT NOT NULL,
    version TEXT NOT NULL,
    -- Names the process, so that a run that its process did not survive can be told from a live one.
    owner   TEXT NOT NULL,
    started TEXT NOT NULL,
    ended   TEXT
) STRICT;

-- prov:Activity: one attempt to make one period of one tier, and afterwards its receipt.
CREATE TABLE activity (
    id           INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL REFERENCES run (id),
    fingerprint  TEXT NOT NULL,
    tier         TEXT NOT NULL,
    period       TEXT NOT NULL,
    -- `called` from just before the first call of a model: such an attempt counts even if only a
    -- crash ended it.
    state        TEXT NOT NULL CHECK (state IN ('planned', 'called', 'ended')),
    engine       TEXT NOT NULL,
    inputs       TEXT NOT NULL,
    attempt      INTEGER NOT NULL,
    started      TEXT NOT NULL,
    ended        TEXT,
    outcome      TEXT CHECK (outcome IN ('written', 'unchanged', 'skipped', 'failed', 'parked')),
    -- Whether a failure counts towards parking.
    counts       INTEGER NOT NULL DEFAULT 0 CHECK (counts IN (0, 1)),
    reason       TEXT,
    path         TEXT,
    sources      INTEGER NOT NULL DEFAULT 0,
    source_chars INTEGER NOT NULL DEFAULT 0,
    output_chars INTEGER NOT NULL DEFAULT 0,
    items        INTEGER NOT NULL DEFAULT 0,
    rejected     INTEGER NOT NULL DEFAULT 0,
    uncovered    INTEGER NOT NULL DEFAULT 0,
    model_calls  INTEGER NOT NULL DEFAULT 0,
    cost_usd     REAL NOT NULL DEFAULT 0,
    CHECK ((state = 'ended') = (outcome IS NOT NULL) AND (state = 'ended') = (ended IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX activity_live ON activity (fingerprint) WHERE state <> 'ended';
CREATE INDEX activity_fingerprint ON activity (fingerprint, id);
CREATE INDEX activity_period ON activity (tier, period, id);
CREATE INDEX activity_run ON activity (run);

-- prov:Entity: a version of a log, a version of a generated file, or an item of a file as it stands.
CREATE TABLE entity (
    id   INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('log', 'file', 'item')),
    path TEXT NOT NULL,
    line INTEGER,
    hash TEXT NOT NULL,
    CHECK ((kind = 'item') = (line IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX entity_item ON entity (path, line) WHERE kind = 'item';
CREATE UNIQUE INDEX entity_version ON entity (path, hash, kind) WHERE kind <> 'item';

CREATE TABLE used (
    activity INTEGER NOT NULL REFERENCES activity (id),
    entity   INTEGER NOT NULL REFERENCES entity (id),
    PRIMARY KEY (activity, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_entity ON used (entity);

CREATE TABLE was_generated_by (
    entity   INTEGER NOT NULL REFERENCES entity (id),
    activity INTEGER NOT NULL REFERENCES activity (id),
    PRIMARY KEY (entity, activity)
) STRICT, WITHOUT ROWID;
CREATE INDEX was_generated_by_activity ON was_generated_by (activity);

-- From an item to the log lines that it rests on, as inclusive ranges. That an item of a month derives
-- from items of weeks is asked, not stored: they share a line, so a week that is folded again can leave
-- nothing stale here.
CREATE TABLE was_derived_from (
    item       INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    stem       TEXT NOT NULL,
    line_start INTEGER NOT NULL,
    line_end   INTEGER NOT NULL CHECK (line_end >= line_start),
    PRIMARY KEY (item, stem, line_start)
) STRICT, WITHOUT ROWID;
CREATE INDEX was_derived_from_line ON was_derived_from (stem, line_end, line_start);

-- The generated files as they stand, each with its present version.
CREATE TABLE document (
    path   TEXT PRIMARY KEY,
    kind   TEXT NOT NULL CHECK (kind IN ('weekly', 'monthly', 'memory', 'wisdom')),
    entity INTEGER NOT NULL REFERENCES entity (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_entity ON document (entity);

-- The logs as they stood when they were last read: how lines that moved are found again.
CREATE TABLE log_lines (
    stem       TEXT PRIMARY KEY,
    entity     INTEGER NOT NULL REFERENCES entity (id),
    -- The number of the line that the first hash belongs to; frontmatter has none.
    first_line INTEGER NOT NULL,
    -- The first 8 bytes of each line's hash, one after the other.
    hashes     BLOB NOT NULL CHECK (length(hashes) % 8 = 0)
) STRICT;
CREATE INDEX log_lines_entity ON log_lines (entity);

-- Why lines reached no item of a file.
CREATE TABLE coverage (
    path       TEXT NOT NULL REFERENCES document (path) ON DELETE CASCADE,
    stem       TEXT NOT NULL,
    line_start INTEGER NOT NULL,
    line_end   INTEGER NOT NULL CHECK (line_end >= line_start),
    reason     TEXT NOT NULL,
    PRIMARY KEY (path, stem, line_start)
) STRICT, WITHOUT ROWID;

-- Logs whose typed memories were extracted, and their hash at that time.
CREATE TABLE extracted (
    stem TEXT PRIMARY KEY,
    hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The journal: a row stands before the first byte of a file is written.
CREATE TABLE intent (
    id       INTEGER PRIMARY KEY,
    activity INTEGER REFERENCES activity (id),
    target   TEXT NOT NULL,
    temp     TEXT NOT NULL,
    new_hash TEXT NOT NULL,
    old_hash TEXT,
    state    TEXT NOT NULL CHECK (state IN ('open', 'done', 'dropped'))
) STRICT;
CREATE INDEX intent_open ON intent (id) WHERE state = 'open';
CREATE INDEX intent_activity ON intent (activity);

-- What the last walk saw, so that an unchanged file is not hashed again. Names are bytes: they need
-- not be text.
CREATE TABLE file (
    path     BLOB PRIMARY KEY,
    inode    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    seen_ns  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
