-- How many characters a token of a model has, as its replies have taught: what was sent and what was
-- read of it, the older the less, and the fewest characters for a token.
CREATE TABLE weight (
    server TEXT NOT NULL,
    model  TEXT NOT NULL,
    chars  INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    least  REAL NOT NULL,
    PRIMARY KEY (server, model)
) STRICT, WITHOUT ROWID;
