-- The ledger of a person: every model call, over all memory folders. Holds no words of logs, prompts or
-- replies. Times are RFC 3339 in UTC, days are in the folder's time zone, money is in US dollars.
--
-- `PRAGMA user_version` is 3. A change of a table needs the next number.

CREATE TABLE call (
    id                 INTEGER PRIMARY KEY,
    at                 TEXT NOT NULL,
    day                TEXT NOT NULL,
    root               TEXT NOT NULL,
    run                INTEGER,
    stage              TEXT NOT NULL,
    period             TEXT NOT NULL,
    provider           TEXT NOT NULL,
    model              TEXT NOT NULL,
    -- `open`: set just before the request is sent.
    state              TEXT NOT NULL CHECK (state IN ('open', 'ended')),
    -- `stop`, or the name of the error.
    outcome            TEXT,
    -- The worst case while the call is open, then the actual use.
    charged_tokens     INTEGER NOT NULL,
    -- NULL: the price is unknown.
    charged_usd        REAL,
    price_date         TEXT,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    latency_ms         INTEGER,
    request_id         TEXT,
    -- Requests sent for this call, retries included.
    requests           INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX call_day ON call (day);

-- State of a server and a model: circuit breaker, dialect, context length.
CREATE TABLE server (
    server         TEXT NOT NULL,
    model          TEXT NOT NULL,
    failures       INTEGER NOT NULL,
    open_until     TEXT,
    -- The account that the server refused.
    barred         TEXT,
    -- How replies are held to a schema.
    rung           TEXT,
    is_thinking    INTEGER NOT NULL CHECK (is_thinking IN (0, 1)),
    context_tokens INTEGER,
    -- Until when the server gets no batches, because it refused one.
    direct_until   TEXT,
    PRIMARY KEY (server, model)
) STRICT, WITHOUT ROWID;

-- Days whose ledger was lost.
CREATE TABLE lost (day TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Batches: requests that a provider answers within a day, at a lower price.
CREATE TABLE batch (
    id     INTEGER PRIMARY KEY,
    server TEXT NOT NULL,
    model  TEXT NOT NULL,
    root   TEXT NOT NULL,
    -- Random. The names of the batch's requests start with it, which identifies the batch.
    token  TEXT NOT NULL UNIQUE,
    -- When it was about to be sent.
    at     TEXT NOT NULL,
    -- `sending`: set just before it is sent; whether it arrived is unknown.
    state  TEXT NOT NULL CHECK (state IN ('sending', 'open', 'ended')),
    -- The provider's name for it.
    remote TEXT
) STRICT;

-- The requests of batches.
CREATE TABLE batched (
    call   INTEGER PRIMARY KEY REFERENCES call (id),
    -- NULL until the run ends and sends its batch.
    batch  INTEGER REFERENCES batch (id),
    root   TEXT NOT NULL,
    -- The name of the request; its reply is stored under it.
    key    BLOB NOT NULL CHECK (length(key) = 32),
    -- The length of the request.
    bytes  INTEGER NOT NULL,
    -- `queued`: in no batch yet. `sent`: in a batch that has not ended. `kept`: the reply is stored.
    -- `again`: unanswered, may go into another batch. `direct`: unanswered, and another batch would not
    -- help. `done`: nothing of it is stored any more.
    state  TEXT NOT NULL CHECK (
        state IN ('queued', 'sent', 'kept', 'again', 'direct', 'done')
    ),
    -- When it entered that state.
    at     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX batched_key ON batched (key);
CREATE INDEX batched_batch ON batched (batch);

-- Characters per token of a model, learned from its replies: sums of characters sent and tokens read, in
-- which older calls weigh less, and the lowest ratio seen.
CREATE TABLE weight (
    server TEXT NOT NULL,
    model  TEXT NOT NULL,
    chars  INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    least  REAL NOT NULL,
    PRIMARY KEY (server, model)
) STRICT, WITHOUT ROWID;
