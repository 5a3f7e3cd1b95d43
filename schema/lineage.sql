-- The lineage of one memory folder, in the terms of W3C PROV, with the history of its files.
--
-- Hashes are lower-case hex, times RFC 3339 in UTC, paths relative to the folder. Only `content` holds
-- text of logs and generated files. `seal` is the row's checksum: a short hash of its other values and of
-- the rows of other tables that belong to it.
--
-- `PRAGMA user_version` is 4. A change of a table needs the next number.

-- One run of the daemon or of a command: the unit that `undo` takes back.
CREATE TABLE run (
    id      INTEGER PRIMARY KEY,
    cause   TEXT NOT NULL,
    version TEXT NOT NULL,
    -- Names the process, so that a run whose process died can be told from a live one.
    owner   TEXT NOT NULL,
    started TEXT NOT NULL,
    ended   TEXT,
    seal    INTEGER
) STRICT;

-- prov:Entity: a version of a log, a version of a generated file, or an item of a file as it is now.
CREATE TABLE entity (
    id   INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('log', 'file', 'item')),
    path TEXT NOT NULL,
    line INTEGER,
    hash TEXT NOT NULL,
    seal INTEGER,
    CHECK ((kind = 'item') = (line IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX entity_item ON entity (path, line) WHERE kind = 'item';
CREATE UNIQUE INDEX entity_version ON entity (path, hash, kind) WHERE kind <> 'item';

-- The inputs of an activity.
CREATE TABLE used (
    activity INTEGER NOT NULL REFERENCES activity (id),
    entity   INTEGER NOT NULL REFERENCES entity (id),
    PRIMARY KEY (activity, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_entity ON used (entity);

-- The outputs of an activity.
CREATE TABLE was_generated_by (
    entity   INTEGER NOT NULL REFERENCES entity (id),
    activity INTEGER NOT NULL REFERENCES activity (id),
    PRIMARY KEY (entity, activity)
) STRICT, WITHOUT ROWID;
CREATE INDEX was_generated_by_activity ON was_generated_by (activity);

-- From an item to the log lines it cites, as inclusive ranges. That an item of a month derives from items
-- of weeks is not stored but queried: they share a line. So summarizing a week again leaves nothing stale
-- here.
CREATE TABLE was_derived_from (
    item       INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    stem       TEXT NOT NULL,
    line_start INTEGER NOT NULL,
    line_end   INTEGER NOT NULL CHECK (line_end >= line_start),
    PRIMARY KEY (item, stem, line_start)
) STRICT, WITHOUT ROWID;
CREATE INDEX was_derived_from_line ON was_derived_from (stem, line_end, line_start);

-- The generated files, each with its present version.
CREATE TABLE document (
    path   TEXT PRIMARY KEY,
    kind   TEXT NOT NULL CHECK (kind IN ('weekly', 'monthly', 'memory', 'wisdom')),
    entity INTEGER NOT NULL REFERENCES entity (id),
    seal   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX document_entity ON document (entity);

-- The lines of the logs when they were last read: by these, relocated lines are found.
CREATE TABLE log_lines (
    stem       TEXT PRIMARY KEY,
    entity     INTEGER NOT NULL REFERENCES entity (id),
    -- The number of the line that the first hash belongs to; frontmatter has no hashes.
    first_line INTEGER NOT NULL,
    -- The first 8 bytes of each line's hash, concatenated.
    hashes     BLOB NOT NULL CHECK (length(hashes) % 8 = 0),
    seal       INTEGER
) STRICT;
CREATE INDEX log_lines_entity ON log_lines (entity);

-- Why lines reached no item of a file.
CREATE TABLE coverage (
    path       TEXT NOT NULL REFERENCES document (path) ON DELETE CASCADE,
    stem       TEXT NOT NULL,
    line_start INTEGER NOT NULL,
    line_end   INTEGER NOT NULL CHECK (line_end >= line_start),
    reason     TEXT NOT NULL,
    seal       INTEGER,
    PRIMARY KEY (path, stem, line_start)
) STRICT, WITHOUT ROWID;

-- Logs whose typed memories were extracted, with the hash each had then.
CREATE TABLE extracted (
    stem TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    seal INTEGER
) STRICT, WITHOUT ROWID;

-- What the last scan saw, so that an unchanged file is not hashed again. Paths are bytes, because file
-- names need not be text.
CREATE TABLE file (
    path     BLOB PRIMARY KEY,
    inode    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    seen_ns  INTEGER NOT NULL,
    seal     INTEGER
) STRICT, WITHOUT ROWID;

-- The bytes of versions, each stored once, compressed with zstd (RFC 8878).
CREATE TABLE content (
    hash   TEXT NOT NULL UNIQUE,
    size   INTEGER NOT NULL,
    packed BLOB NOT NULL
) STRICT;

-- History: the content of a path from a time on. The newest row of a path is its last known content.
CREATE TABLE version (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    path     TEXT NOT NULL,
    -- `written`, `removed`: by a run. `folded`: a log as a run read it. `found`, `gone`: by somebody else.
    -- `forgotten`, `pruned`: the bytes were deleted from the history.
    cause    TEXT NOT NULL CHECK
             (cause IN ('written', 'removed', 'folded', 'found', 'gone', 'forgotten', 'pruned')),
    hash     TEXT REFERENCES content (hash),
    run      INTEGER REFERENCES run (id),
    activity INTEGER REFERENCES activity (id),
    at       TEXT NOT NULL,
    seal     INTEGER,
    CHECK ((hash IS NOT NULL) = (cause IN ('written', 'folded', 'found')))
) STRICT;
CREATE INDEX version_path ON version (path, id);
CREATE INDEX version_run ON version (run);
CREATE INDEX version_hash ON version (hash);
CREATE INDEX version_activity ON version (activity);

-- Which runs a run took back.
CREATE TABLE taken_back (
    run   INTEGER NOT NULL REFERENCES run (id),
    taken INTEGER NOT NULL REFERENCES run (id),
    PRIMARY KEY (run, taken)
) STRICT, WITHOUT ROWID;
CREATE INDEX taken_back_taken ON taken_back (taken);

-- prov:Activity: one attempt to make one period of one tier (a job), and its receipt once it has ended.
CREATE TABLE activity (
    id           INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL REFERENCES run (id),
    fingerprint  TEXT NOT NULL,
    tier         TEXT NOT NULL,
    period       TEXT NOT NULL,
    -- `called`: set just before the first model call, so the attempt counts even if a crash ends it.
    -- `replied`: the raw reply is stored. `parsed`: drafted and checked; files are being written.
    -- `written`: the files are as intended. `ended`: see `outcome`.
    state        TEXT NOT NULL CHECK
                 (state IN ('planned', 'called', 'replied', 'parsed', 'written', 'ended')),
    engine       TEXT NOT NULL,
    inputs       TEXT NOT NULL,
    attempt      INTEGER NOT NULL,
    started      TEXT NOT NULL,
    ended        TEXT,
    -- `parked`: stuck after repeated failures.
    outcome      TEXT CHECK (outcome IN ('written', 'unchanged', 'skipped', 'failed', 'parked')),
    -- Whether a failure counts towards being stuck.
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
    seal         INTEGER,
    -- Amounts and days in the lines that a model's items cite, and how many of them the items repeat.
    amounts      INTEGER NOT NULL DEFAULT 0,
    amounts_kept INTEGER NOT NULL DEFAULT 0,
    CHECK ((state = 'ended') = (outcome IS NOT NULL) AND (state = 'ended') = (ended IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX activity_live ON activity (fingerprint) WHERE state <> 'ended';
CREATE INDEX activity_fingerprint ON activity (fingerprint, id);
CREATE INDEX activity_period ON activity (tier, period, id);
CREATE INDEX activity_run ON activity (run);

-- The journal: a row is committed before the first byte of its file is written.
CREATE TABLE intent (
    id       INTEGER PRIMARY KEY,
    run      INTEGER REFERENCES run (id),
    activity INTEGER REFERENCES activity (id),
    target   TEXT NOT NULL,
    -- For a file that is moved: where its bytes come from.
    source   TEXT,
    temp     TEXT NOT NULL,
    -- NULL: the file will be removed.
    new_hash TEXT,
    -- NULL: the file does not exist yet.
    old_hash TEXT,
    -- The replaced bytes are being forgotten and must not enter the history.
    forgets  INTEGER NOT NULL DEFAULT 0 CHECK (forgets IN (0, 1)),
    state    TEXT NOT NULL CHECK (state IN ('open', 'done', 'dropped')),
    seal     INTEGER,
    CHECK (new_hash IS NOT NULL OR old_hash IS NOT NULL)
) STRICT;
CREATE INDEX intent_open ON intent (id) WHERE state = 'open';
CREATE INDEX intent_activity ON intent (activity);
CREATE INDEX intent_run ON intent (run);

-- The device each folder was last seen on: files missing from another device were not deleted.
CREATE TABLE folder (
    path   TEXT PRIMARY KEY,
    device INTEGER NOT NULL,
    seal   INTEGER
) STRICT, WITHOUT ROWID;

-- Quarantined lines of logs as they were last read. Holds no words.
CREATE TABLE held (
    stem TEXT NOT NULL,
    line INTEGER NOT NULL,
    -- Why: names of concerns, separated by spaces.
    why  TEXT NOT NULL,
    -- 'line': excluded everywhere. 'memory': it may not be the only source of a memory or of wisdom.
    what TEXT NOT NULL CHECK (what IN ('line', 'memory')),
    seal INTEGER,
    PRIMARY KEY (stem, line)
) STRICT, WITHOUT ROWID;

-- Changes that wait for a person to accept them.
CREATE TABLE proposal (
    id          INTEGER PRIMARY KEY,
    -- The job that proposes. A new proposal for the same inputs replaces the old one.
    fingerprint TEXT NOT NULL,
    period      TEXT NOT NULL,
    -- The file that would change.
    target      TEXT NOT NULL,
    -- The change, as JSON.
    change      TEXT NOT NULL,
    -- The source lines, as a citation.
    sources     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('open', 'accepted', 'refused')),
    at          TEXT NOT NULL,
    seal        INTEGER
) STRICT;
CREATE INDEX proposal_open ON proposal (id) WHERE state = 'open';
CREATE INDEX proposal_fingerprint ON proposal (fingerprint);
