-- History: what stood in every generated file and, when it was folded, in every log. From here on the
-- database holds text; it is private to its owner.

-- The bytes of a version, once however often they stood somewhere. Packed with zstd (RFC 8878).
CREATE TABLE content (
    hash   TEXT NOT NULL UNIQUE,
    size   INTEGER NOT NULL,
    packed BLOB NOT NULL
) STRICT;

-- What stood under a path from a time on, the newest row of a path being what was last known of it.
CREATE TABLE version (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    path     TEXT NOT NULL,
    -- `written`, `removed`: by a run. `folded`: a log as a run read it. `found`, `gone`: by somebody else.
    -- `forgotten`, `pruned`: the bytes are no longer kept.
    cause    TEXT NOT NULL CHECK
             (cause IN ('written', 'removed', 'folded', 'found', 'gone', 'forgotten', 'pruned')),
    hash     TEXT REFERENCES content (hash),
    run      INTEGER REFERENCES run (id),
    activity INTEGER REFERENCES activity (id),
    at       TEXT NOT NULL,
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

-- Hash of all rows of a run, taken when it ended: what no file can tell is checked by it.
ALTER TABLE run ADD COLUMN seal TEXT;

-- A job passes more states, and a file can be removed or moved.
PRAGMA defer_foreign_keys = ON;

CREATE TEMP TABLE activity_before AS SELECT * FROM activity;
DROP TABLE activity;
CREATE TABLE activity (
    id           INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL REFERENCES run (id),
    fingerprint  TEXT NOT NULL,
    tier         TEXT NOT NULL,
    period       TEXT NOT NULL,
    -- `called` from just before the first call of a model: such an attempt counts even if only a
    -- crash ended it. `replied`: the raw reply is kept. `parsed`: it was drafted and checked, and the
    -- files are being written. `written`: they stand as intended. `ended`: the outcome says how.
    state        TEXT NOT NULL CHECK
                 (state IN ('planned', 'called', 'replied', 'parsed', 'written', 'ended')),
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
INSERT INTO activity
    (id, run, fingerprint, tier, period, state, engine, inputs, attempt, started, ended, outcome,
     counts, reason, path, sources, source_chars, output_chars, items, rejected, uncovered,
     model_calls, cost_usd)
SELECT id, run, fingerprint, tier, period, state, engine, inputs, attempt, started, ended, outcome,
       counts, reason, path, sources, source_chars, output_chars, items, rejected, uncovered,
       model_calls, cost_usd
FROM activity_before;
DROP TABLE activity_before;
CREATE UNIQUE INDEX activity_live ON activity (fingerprint) WHERE state <> 'ended';
CREATE INDEX activity_fingerprint ON activity (fingerprint, id);
CREATE INDEX activity_period ON activity (tier, period, id);
CREATE INDEX activity_run ON activity (run);

ALTER TABLE intent RENAME TO intent_before;
DROP INDEX intent_open;
DROP INDEX intent_activity;
CREATE TABLE intent (
    id       INTEGER PRIMARY KEY,
    run      INTEGER REFERENCES run (id),
    activity INTEGER REFERENCES activity (id),
    target   TEXT NOT NULL,
    -- Where the bytes come from, for a file that is moved.
    source   TEXT,
    temp     TEXT NOT NULL,
    -- NULL: the file is to be removed.
    new_hash TEXT,
    -- NULL: no file stands there.
    old_hash TEXT,
    -- What stood there must not be kept: it is being forgotten.
    forgets  INTEGER NOT NULL DEFAULT 0 CHECK (forgets IN (0, 1)),
    state    TEXT NOT NULL CHECK (state IN ('open', 'done', 'dropped')),
    CHECK (new_hash IS NOT NULL OR old_hash IS NOT NULL)
) STRICT;
INSERT INTO intent (id, activity, target, temp, new_hash, old_hash, state)
SELECT id, activity, target, temp, new_hash, old_hash, state FROM intent_before;
DROP TABLE intent_before;
CREATE INDEX intent_open ON intent (id) WHERE state = 'open';
CREATE INDEX intent_activity ON intent (activity);
CREATE INDEX intent_run ON intent (run);

-- The device on which a folder was found last: files that are gone from another one were not deleted.
CREATE TABLE folder (
    path   TEXT PRIMARY KEY,
    device INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
