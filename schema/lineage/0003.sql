-- What waits for a person.

-- Lines of logs that wait for a person, as the log stood when it was last read. No words.
CREATE TABLE held (
    stem TEXT NOT NULL,
    line INTEGER NOT NULL,
    -- Why, by the names of concerns, separated by spaces.
    why  TEXT NOT NULL,
    -- 'line': it is kept out everywhere. 'memory': alone it carries no memory and no wisdom.
    what TEXT NOT NULL CHECK (what IN ('line', 'memory')),
    seal INTEGER,
    PRIMARY KEY (stem, line)
) STRICT, WITHOUT ROWID;

-- Changes that are made when a person accepts them.
CREATE TABLE proposal (
    id          INTEGER PRIMARY KEY,
    -- The job whose work it is: what is proposed again for the same inputs takes its place.
    fingerprint TEXT NOT NULL,
    period      TEXT NOT NULL,
    -- The file that would be changed.
    target      TEXT NOT NULL,
    -- What would be done, as JSON.
    change      TEXT NOT NULL,
    -- The lines that it rests on, as a citation.
    sources     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('open', 'accepted', 'refused')),
    at          TEXT NOT NULL,
    seal        INTEGER
) STRICT;
CREATE INDEX proposal_open ON proposal (id) WHERE state = 'open';
CREATE INDEX proposal_fingerprint ON proposal (fingerprint);
