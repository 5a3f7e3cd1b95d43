-- Batches: requests that a provider answers within a day, at a lower price.

-- Until when a server is not given batches, because it refused one.
ALTER TABLE server ADD COLUMN direct_until TEXT;

CREATE TABLE batch (
    id     INTEGER PRIMARY KEY,
    -- Who answers, and for which model and root.
    server TEXT NOT NULL,
    model  TEXT NOT NULL,
    root   TEXT NOT NULL,
    -- Random; the names of its requests begin with it, so that it is known again.
    token  TEXT NOT NULL UNIQUE,
    -- When it was about to be sent.
    at     TEXT NOT NULL,
    -- `sending` from just before it goes out: whether it arrived is not known then.
    state  TEXT NOT NULL CHECK (state IN ('sending', 'open', 'ended')),
    -- The provider's name for it.
    remote TEXT
) STRICT;

CREATE TABLE batched (
    call   INTEGER PRIMARY KEY REFERENCES call (id),
    -- NULL while it waits for the end of its pass.
    batch  INTEGER REFERENCES batch (id),
    root   TEXT NOT NULL,
    -- The name of the request: a reply is kept under it.
    key    BLOB NOT NULL CHECK (length(key) = 32),
    -- How long the request is, in bytes.
    bytes  INTEGER NOT NULL,
    -- `queued`: in no batch yet. `sent`: in a batch that has not ended. `kept`: answered, and the reply
    -- is kept. `again`: not answered, and may go into another batch. `direct`: not answered, and a batch
    -- would not do better. `done`: nothing is kept of it any more.
    state  TEXT NOT NULL CHECK (
        state IN ('queued', 'sent', 'kept', 'again', 'direct', 'done')
    ),
    -- When it came into that state.
    at     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX batched_key ON batched (key);
CREATE INDEX batched_batch ON batched (batch);
