-- The ledger of a person: every call of a model, over all roots. No words of logs, prompts, or replies.
-- Times are RFC 3339 in UTC, days those of the root's zone, money US dollars.

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
    -- `open` from just before the request goes out.
    state              TEXT NOT NULL CHECK (state IN ('open', 'ended')),
    -- `stop`, or the name of what went wrong.
    outcome            TEXT,
    -- The worst case while it is open, then what it took.
    charged_tokens     INTEGER NOT NULL,
    -- NULL: nobody knows the price.
    charged_usd        REAL,
    price_date         TEXT,
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens  INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    latency_ms         INTEGER,
    request_id         TEXT,
    -- Requests that were sent for it, the repeated ones too.
    requests           INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX call_day ON call (day);

-- What is known of a server and a model: breaker, dialect, context length.
CREATE TABLE server (
    server         TEXT NOT NULL,
    model          TEXT NOT NULL,
    failures       INTEGER NOT NULL,
    open_until     TEXT,
    barred         TEXT,
    rung           TEXT,
    is_thinking    INTEGER NOT NULL CHECK (is_thinking IN (0, 1)),
    context_tokens INTEGER,
    PRIMARY KEY (server, model)
) STRICT, WITHOUT ROWID;

-- Days of which the ledger was lost.
CREATE TABLE lost (day TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
