-- The claims database of a fleet (PostgreSQL 13 or later): which root is due, who works on it, and what may be
-- spent. The roots themselves are in object storage; if this database is lost, nothing of them is.
--
-- Version 2, in `memoird.meta`. A change of a table or a function needs the next number.
--
-- Each call of memoird is one statement, a call of a function below, and so one transaction: it is committed before
-- any work begins, and a pooler such as PgBouncer may use another connection for each. There are no locks that
-- outlast a transaction, no prepared statements, and no notifications. All times are those of this server; workers
-- send durations, so that their clocks do not matter.
--
-- Row-level security: a function sets `memoird.tenant` for its transaction and then sees the rows of this tenant only.
-- It also binds the owner of the tables, but no superuser: let workers connect as an ordinary role. It protects from
-- mistakes in memoird, and not from a process that was taken over: any connection may name another tenant. `meta`,
-- `tenant` and `tranche` are of the fleet as a whole, and hold no more of a tenant than its name.

CREATE SCHEMA memoird;

CREATE TABLE memoird.meta (
    version integer NOT NULL,
    -- A secret of the fleet, from which prompts derive the markers around data: the same on all workers, so that
    -- they recognize a reply that another one paid for.
    nonce   text NOT NULL,
    -- When a worker last looked for pushes that were not reported.
    swept_at timestamptz
);

-- When a tenant is served next: the line in which tenants wait. Holds nothing about roots.
CREATE TABLE memoird.tenant (
    tenant  text PRIMARY KEY,
    turn_at timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX tenant_turn ON memoird.tenant (turn_at) WHERE turn_at IS NOT NULL;

CREATE TABLE memoird.root (
    tenant      text NOT NULL,
    id          text NOT NULL,
    -- When there is work; NULL: not before the next push.
    due_at      timestamptz,
    -- The newest generation of the manifest that anybody reported.
    gen         bigint NOT NULL DEFAULT 0,
    -- Identifies the bundle that was reported: one that is created again at the same place has another one.
    bundle      text,
    -- The worker that holds the lease.
    owner       text,
    -- Rises with each claim. Only the owner of the newest one may change the row.
    fence       bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    -- Claims since the last success.
    attempts    integer NOT NULL DEFAULT 0,
    -- When the manifest was last changed that a sweep has seen, by the clock of the store.
    seen_at     timestamptz,
    problem     text,
    -- When it may be claimed: a lease that has run out may be, too.
    ready_at    timestamptz GENERATED ALWAYS AS (coalesce(lease_until, due_at)) STORED,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX root_ready ON memoird.root (tenant, ready_at) WHERE ready_at IS NOT NULL;
CREATE INDEX root_held ON memoird.root (tenant, lease_until) WHERE lease_until IS NOT NULL;

-- The last runs of each root.
CREATE TABLE memoird.run (
    tenant     text NOT NULL,
    root       text NOT NULL,
    fence      bigint NOT NULL,
    owner      text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    -- `done`, `failed`, `lost`: the lease ran out.
    outcome    text,
    gen        bigint,
    detail     text,
    PRIMARY KEY (tenant, root, fence)
);

-- Limits: `tenant` and `root` empty for the whole fleet, `root` empty for a tenant. Who sets one of a tenant sets
-- `memoird.tenant` first.
CREATE TABLE memoird.cap (
    tenant text NOT NULL DEFAULT '',
    root   text NOT NULL DEFAULT '',
    span   text NOT NULL CHECK (span IN ('day', 'month')),
    unit   text NOT NULL CHECK (unit IN ('usd', 'tokens', 'calls')),
    most   double precision NOT NULL CHECK (most >= 0),
    PRIMARY KEY (tenant, root, span, unit)
);

-- What is charged against each limit; for the fleet including what workers hold in tranches.
CREATE TABLE memoird.spent (
    tenant text NOT NULL DEFAULT '',
    root   text NOT NULL DEFAULT '',
    -- `2026-04-13`, or `2026-04` for a month.
    period text NOT NULL,
    unit   text NOT NULL,
    amount double precision NOT NULL,
    PRIMARY KEY (tenant, root, period, unit)
) WITH (fillfactor = 50);

-- A part of the fleet's limit that a worker took in advance, so that not every call waits for one row.
CREATE TABLE memoird.tranche (
    owner   text NOT NULL,
    period  text NOT NULL,
    unit    text NOT NULL,
    -- What is left of it.
    amount  double precision NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (owner, period, unit)
);

-- Calls of models. Holds no words.
CREATE TABLE memoird.ledger (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text NOT NULL,
    root        text NOT NULL,
    -- Identifies the request.
    fingerprint text NOT NULL,
    attempt     integer NOT NULL,
    owner       text NOT NULL,
    at          timestamptz NOT NULL,
    day         text NOT NULL,
    -- `open`: reserved, and perhaps sent.
    state       text NOT NULL CHECK (state IN ('open', 'ended')),
    outcome     text,
    -- The worst case while the call is open, then the actual use.
    tokens      double precision NOT NULL,
    usd         double precision NOT NULL,
    UNIQUE (tenant, root, fingerprint, attempt)
);
CREATE INDEX ledger_day ON memoird.ledger (tenant, day);

-- Replies, as the model sent them, until the work that needs them is published. They may quote logs.
CREATE TABLE memoird.reply (
    tenant      text NOT NULL,
    root        text NOT NULL,
    fingerprint text NOT NULL,
    at          timestamptz NOT NULL,
    body        text NOT NULL,
    PRIMARY KEY (tenant, root, fingerprint)
);

ALTER TABLE memoird.root ENABLE ROW LEVEL SECURITY;
ALTER TABLE memoird.root FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memoird.root USING (tenant = current_setting('memoird.tenant', true));
ALTER TABLE memoird.run ENABLE ROW LEVEL SECURITY;
ALTER TABLE memoird.run FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memoird.run USING (tenant = current_setting('memoird.tenant', true));
ALTER TABLE memoird.ledger ENABLE ROW LEVEL SECURITY;
ALTER TABLE memoird.ledger FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memoird.ledger USING (tenant = current_setting('memoird.tenant', true));
ALTER TABLE memoird.reply ENABLE ROW LEVEL SECURITY;
ALTER TABLE memoird.reply FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memoird.reply USING (tenant = current_setting('memoird.tenant', true));
ALTER TABLE memoird.spent ENABLE ROW LEVEL SECURITY;
ALTER TABLE memoird.spent FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memoird.spent USING (tenant IN ('', current_setting('memoird.tenant', true)));
ALTER TABLE memoird.cap ENABLE ROW LEVEL SECURITY;
ALTER TABLE memoird.cap FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON memoird.cap USING (tenant IN ('', current_setting('memoird.tenant', true)));

-- Notes that a tenant has something to do at a time.
CREATE FUNCTION memoird.note_ready(for_tenant text, ready timestamptz) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO memoird.tenant AS t (tenant, turn_at) VALUES (for_tenant, ready)
    ON CONFLICT (tenant) DO UPDATE SET turn_at = least(t.turn_at, excluded.turn_at)
$$;

-- Takes the tenant that has waited longest and has a root that may be claimed, and puts it at the end of the line.
-- Without one, returns in how many milliseconds there may be one; NULL: no tenant waits for anything.
CREATE FUNCTION memoird.next_turn(OUT picked text, OUT wait_ms bigint)
LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    first_ready timestamptz;
BEGIN
    -- A tenant whose root was claimed meanwhile has no turn; some of them are passed over in one call.
    FOR tries IN 1..100 LOOP
        SELECT t.tenant INTO picked FROM memoird.tenant t
            WHERE t.turn_at <= moment ORDER BY t.turn_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN picked IS NULL;
        PERFORM set_config('memoird.tenant', picked, true);
        SELECT r.ready_at INTO first_ready FROM memoird.root r
            WHERE r.tenant = picked AND r.ready_at IS NOT NULL ORDER BY r.ready_at LIMIT 1;
        IF first_ready <= moment THEN
            UPDATE memoird.tenant t SET turn_at = moment WHERE t.tenant = picked;
            wait_ms := 0;
            RETURN;
        END IF;
        UPDATE memoird.tenant t SET turn_at = first_ready WHERE t.tenant = picked;
    END LOOP;
    picked := NULL;
    SELECT greatest(0, extract(epoch FROM t.turn_at - moment) * 1000)::bigint INTO wait_ms
        FROM memoird.tenant t WHERE t.turn_at IS NOT NULL ORDER BY t.turn_at LIMIT 1;
END $$;

-- Claims the root of a tenant whose worker died, else the one that has been ready longest; or the one that is named if
-- nobody holds it. A root that is named and unknown is recorded. Without a claim, `id` is NULL, and `held_ms` says for
-- how long somebody else holds the named root.
CREATE FUNCTION memoird.claim_root(
    for_tenant text, named text, new_owner text, lease_ms bigint,
    OUT id text, OUT gen bigint, OUT fence bigint, OUT attempts integer, OUT held_ms bigint
) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    ends timestamptz := moment + lease_ms * interval '1 millisecond';
    is_deadly boolean;
    tries integer;
    pause interval;
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    IF named IS NULL THEN
        LOOP
            -- It was due before its lease ended, and must not wait for all that became due meanwhile.
            SELECT r.id, r.attempts >= 5, r.attempts INTO id, is_deadly, tries
                FROM memoird.root r WHERE r.tenant = for_tenant AND r.lease_until <= moment
                ORDER BY r.lease_until LIMIT 1 FOR UPDATE SKIP LOCKED;
            IF id IS NULL THEN
                SELECT r.id, false, r.attempts INTO id, is_deadly, tries
                    FROM memoird.root r WHERE r.tenant = for_tenant AND r.ready_at <= moment
                        AND r.lease_until IS NULL
                    ORDER BY r.ready_at LIMIT 1 FOR UPDATE SKIP LOCKED;
            END IF;
            EXIT WHEN id IS NULL OR NOT is_deadly;
            -- One that workers die of again and again waits longer each time, as one that fails does.
            pause := least(interval '6 hours', interval '30 seconds' * 2 ^ least(tries - 5, 16));
            UPDATE memoird.root r SET owner = NULL, lease_until = NULL, due_at = moment + pause,
                    problem = 'its workers died'
                WHERE r.tenant = for_tenant AND r.id = claim_root.id;
            PERFORM memoird.note_ready(for_tenant, moment + pause);
        END LOOP;
    ELSE
        INSERT INTO memoird.root AS r (tenant, id) VALUES (for_tenant, named) ON CONFLICT DO NOTHING;
        SELECT r.id INTO id FROM memoird.root r WHERE r.tenant = for_tenant AND r.id = named
            AND (r.owner IS NULL OR r.lease_until <= moment) FOR UPDATE;
        IF id IS NULL THEN
            SELECT greatest(0, extract(epoch FROM r.lease_until - moment) * 1000)::bigint INTO held_ms
                FROM memoird.root r WHERE r.tenant = for_tenant AND r.id = named;
        END IF;
    END IF;
    IF id IS NULL THEN
        RETURN;
    END IF;
    UPDATE memoird.root r
        SET owner = new_owner, fence = r.fence + 1, lease_until = ends, attempts = r.attempts + 1
        WHERE r.tenant = for_tenant AND r.id = claim_root.id
        RETURNING r.gen, r.fence, r.attempts INTO gen, fence, attempts;
    UPDATE memoird.run u SET ended_at = moment, outcome = 'lost'
        WHERE u.tenant = for_tenant AND u.root = claim_root.id AND u.fence = claim_root.fence - 1
            AND u.ended_at IS NULL;
    INSERT INTO memoird.run (tenant, root, fence, owner, started_at)
        VALUES (for_tenant, id, fence, new_owner, moment);
    IF named IS NOT NULL THEN
        -- If this worker dies, others find the root when its lease has run out.
        PERFORM memoird.note_ready(for_tenant, ends);
    END IF;
END $$;

-- Extends a lease. Returns false if it was lost.
CREATE FUNCTION memoird.renew_lease(for_tenant text, named text, own text, own_fence bigint, lease_ms bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    ends timestamptz := clock_timestamp() + lease_ms * interval '1 millisecond';
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    UPDATE memoird.root r SET lease_until = ends
        WHERE r.tenant = for_tenant AND r.id = named AND r.owner = own AND r.fence = own_fence;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE memoird.tranche t SET expires = ends WHERE t.owner = own;
    RETURN true;
END $$;

-- Returns what a worker took of the fleet's limits and did not use.
CREATE FUNCTION memoird.return_tranches(own text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    rest record;
BEGIN
    FOR rest IN SELECT t.period, t.unit, t.amount FROM memoird.tranche t WHERE t.owner = own
            ORDER BY length(t.period) DESC, array_position(ARRAY['usd', 'tokens', 'calls'], t.unit) FOR UPDATE LOOP
        UPDATE memoird.spent s SET amount = s.amount - rest.amount
            WHERE s.tenant = '' AND s.root = '' AND s.period = rest.period AND s.unit = rest.unit;
    END LOOP;
    DELETE FROM memoird.tranche t WHERE t.owner = own;
END $$;

-- Returns whether two bundles at one place are not the same; one that is not known may be any.
CREATE FUNCTION memoird.is_other(bundle text, new_bundle text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT bundle IS NOT NULL AND new_bundle IS NOT NULL AND bundle <> new_bundle
$$;

-- Ends a lease. `new_due_ms` is from now on, NULL for a root that waits for a push. A generation that was reported
-- meanwhile and is newer than the published one keeps its time. Returns false if the lease was lost.
CREATE FUNCTION memoird.finish_root(
    for_tenant text, named text, own text, own_fence bigint, new_gen bigint, new_bundle text, new_due_ms bigint,
    how text, why text, drops_replies boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    next_due timestamptz := moment + new_due_ms * interval '1 millisecond';
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    PERFORM memoird.return_tranches(own);
    UPDATE memoird.root r SET owner = NULL, lease_until = NULL, problem = why,
            due_at = CASE WHEN r.gen > new_gen AND NOT memoird.is_other(r.bundle, new_bundle)
                THEN coalesce(r.due_at, next_due) ELSE next_due END,
            gen = CASE WHEN memoird.is_other(r.bundle, new_bundle) THEN new_gen ELSE greatest(r.gen, new_gen) END,
            bundle = coalesce(new_bundle, r.bundle),
            attempts = CASE WHEN how = 'done' THEN 0 ELSE r.attempts END
        WHERE r.tenant = for_tenant AND r.id = named AND r.owner = own AND r.fence = own_fence
        RETURNING r.due_at INTO next_due;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE memoird.run u SET ended_at = moment, outcome = how, gen = new_gen, detail = why
        WHERE u.tenant = for_tenant AND u.root = named AND u.fence = own_fence;
    IF drops_replies THEN
        DELETE FROM memoird.reply p WHERE p.tenant = for_tenant AND p.root = named;
    END IF;
    IF next_due IS NOT NULL THEN
        PERFORM memoird.note_ready(for_tenant, greatest(next_due, moment));
    END IF;
    RETURN true;
END $$;

-- Ends the lease of a root that was named, and at whose place there is no bundle: its row is removed, if nobody ever
-- reported it. Returns whether it was.
CREATE FUNCTION memoird.abandon_root(for_tenant text, named text, own text, own_fence bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    DELETE FROM memoird.root r WHERE r.tenant = for_tenant AND r.id = named AND r.owner = own
        AND r.fence = own_fence AND r.gen = 0 AND r.bundle IS NULL AND r.due_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM memoird.run u WHERE u.tenant = for_tenant AND u.root = named;
    RETURN true;
END $$;

-- Records that a generation was published, and when the root is due next; `new_due_ms` as above. For a bundle that was
-- created again the row begins again, and whoever works on the old one loses the lease.
CREATE FUNCTION memoird.report_root(
    for_tenant text, named text, new_gen bigint, new_bundle text, new_due_ms bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    next_due timestamptz := moment + new_due_ms * interval '1 millisecond';
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    UPDATE memoird.root r SET gen = 0, bundle = new_bundle, owner = NULL, lease_until = NULL, fence = r.fence + 1,
            attempts = 0, seen_at = NULL, problem = NULL
        WHERE r.tenant = for_tenant AND r.id = named AND memoird.is_other(r.bundle, new_bundle);
    IF FOUND THEN
        UPDATE memoird.run u SET ended_at = moment, outcome = 'lost'
            WHERE u.tenant = for_tenant AND u.root = named AND u.ended_at IS NULL;
    END IF;
    INSERT INTO memoird.root AS r (tenant, id, gen, bundle, due_at)
        VALUES (for_tenant, named, new_gen, new_bundle, next_due)
        ON CONFLICT (tenant, id) DO UPDATE
            SET gen = excluded.gen, bundle = coalesce(excluded.bundle, r.bundle), due_at = excluded.due_at
            WHERE r.gen <= excluded.gen;
    IF FOUND AND next_due IS NOT NULL THEN
        PERFORM memoird.note_ready(for_tenant, greatest(next_due, moment));
    END IF;
END $$;

-- Returns what is recorded about a root; no row if it is unknown.
CREATE FUNCTION memoird.known_root(for_tenant text, named text)
RETURNS TABLE (gen bigint, bundle text, seen_at timestamptz) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    RETURN QUERY SELECT r.gen, r.bundle, r.seen_at FROM memoird.root r WHERE r.tenant = for_tenant AND r.id = named;
END $$;

-- Records that a sweep has seen the manifest of a root that was last changed then.
CREATE FUNCTION memoird.note_seen(for_tenant text, named text, changed timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    UPDATE memoird.root r SET seen_at = changed WHERE r.tenant = for_tenant AND r.id = named;
END $$;

-- Returns whether the last sweep began long enough ago; then this one begins.
CREATE FUNCTION memoird.begin_sweep(every_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memoird.meta m SET swept_at = clock_timestamp()
        WHERE m.swept_at IS NULL OR m.swept_at < clock_timestamp() - every_ms * interval '1 millisecond';
    RETURN FOUND;
END $$;

-- Lets the next worker sweep at once: this sweep failed.
CREATE FUNCTION memoird.abandon_sweep() RETURNS void LANGUAGE sql AS $$
    UPDATE memoird.meta SET swept_at = NULL
$$;

-- Puts each tenant into the line at the right place, and removes what is old.
CREATE FUNCTION memoird.sweep() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    each text;
    old timestamptz := clock_timestamp() - interval '30 days';
BEGIN
    FOR each IN SELECT t.tenant FROM memoird.tenant t ORDER BY t.tenant LOOP
        PERFORM set_config('memoird.tenant', each, true);
        PERFORM memoird.note_ready(each, r.ready_at) FROM memoird.root r
            WHERE r.tenant = each AND r.ready_at IS NOT NULL ORDER BY r.ready_at LIMIT 1;
        DELETE FROM memoird.run u WHERE u.tenant = each AND u.started_at < old;
        DELETE FROM memoird.reply p WHERE p.tenant = each AND p.at < old;
    END LOOP;
END $$;

-- Adds to what is charged to a tenant or a root; raises MB001 if that exceeds the limit `most`, if there is one. What is
-- spent without a limit counts too, so that one that is set later knows it.
--
-- Whoever changes rows of `spent` takes them in one order, so that no two calls wait for each other: those of a tenant
-- before those of the fleet; within these by span (day, month), unit (usd, tokens, calls), root before tenant.
CREATE FUNCTION memoird.charge(
    for_tenant text, for_root text, for_period text, for_unit text, more double precision, most double precision,
    span text, scope text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    total double precision;
BEGIN
    INSERT INTO memoird.spent AS s (tenant, root, period, unit, amount)
        VALUES (for_tenant, for_root, for_period, for_unit, more)
        ON CONFLICT (tenant, root, period, unit) DO UPDATE SET amount = s.amount + more
        RETURNING s.amount INTO total;
    IF total > most THEN
        RAISE EXCEPTION USING ERRCODE = 'MB001', MESSAGE = json_build_object(
            'span', span, 'scope', scope, 'unit', for_unit, 'used', total - more, 'requested', more,
            'limit', most)::text;
    END IF;
END $$;

-- Charges a call to the fleet: from the worker's tranche, else a new one is taken; raises MB001 if that exceeds the limit
-- `most`, if there is one.
CREATE FUNCTION memoird.charge_fleet(
    own text, for_period text, for_unit text, more double precision, most double precision,
    span text, lease_ms bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    total double precision;
    wanted double precision;
BEGIN
    UPDATE memoird.tranche t SET amount = t.amount - more
        WHERE t.owner = own AND t.period = for_period AND t.unit = for_unit AND t.amount >= more;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO memoird.spent (tenant, root, period, unit, amount) VALUES ('', '', for_period, for_unit, 0)
        ON CONFLICT DO NOTHING;
    PERFORM 1 FROM memoird.spent s
        WHERE s.tenant = '' AND s.root = '' AND s.period = for_period AND s.unit = for_unit FOR UPDATE;
    -- What dead workers held, and the rest of one's own.
    WITH old AS (
        SELECT t.owner, t.period, t.unit FROM memoird.tranche t
            WHERE t.period = for_period AND t.unit = for_unit AND (t.owner = own OR t.expires < moment)
            FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM memoird.tranche t USING old
            WHERE t.owner = old.owner AND t.period = old.period AND t.unit = old.unit RETURNING t.amount
    )
    UPDATE memoird.spent s SET amount = s.amount - (SELECT coalesce(sum(gone.amount), 0) FROM gone)
        WHERE s.tenant = '' AND s.root = '' AND s.period = for_period AND s.unit = for_unit
        RETURNING s.amount INTO total;
    IF total + more > most THEN
        RAISE EXCEPTION USING ERRCODE = 'MB001', MESSAGE = json_build_object(
            'span', span, 'scope', 'fleet', 'unit', for_unit, 'used', total, 'requested', more,
            'limit', most)::text;
    END IF;
    -- A hundredth of the limit, and no more than a tenth of what is left of it; without a limit enough for some calls.
    wanted := CASE WHEN most IS NULL THEN 16 * more
        ELSE greatest(more, least(most / 100, (most - total) / 10)) END;
    IF for_unit <> 'usd' THEN
        wanted := greatest(more, floor(wanted));
    END IF;
    UPDATE memoird.spent s SET amount = s.amount + wanted
        WHERE s.tenant = '' AND s.root = '' AND s.period = for_period AND s.unit = for_unit;
    INSERT INTO memoird.tranche (owner, period, unit, amount, expires)
        VALUES (own, for_period, for_unit, wanted - more, moment + lease_ms * interval '1 millisecond')
        ON CONFLICT (owner, period, unit) DO UPDATE SET amount = excluded.amount, expires = excluded.expires;
END $$;

-- Reserves a call at its worst case, or reports the limit that leaves no room: `{"call": 7}` or
-- `{"exhausted": {…}}`. `limits` are those of the worker's configuration, `{"fleet": {"day": {"usd": 5}}, "root":
-- {…}}`; a row of `cap` takes the place of the same one. The call must belong to a lease that is held.
CREATE FUNCTION memoird.reserve_call(
    for_tenant text, for_root text, own text, own_fence bigint, request text, on_day text,
    may_tokens double precision, may_usd double precision, limits jsonb, lease_ms bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    call bigint;
    most double precision;
    more double precision;
    span text;
    unit text;
    period text;
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    PERFORM 1 FROM memoird.root r
        WHERE r.tenant = for_tenant AND r.id = for_root AND r.owner = own AND r.fence = own_fence;
    IF NOT FOUND THEN
        RETURN json_build_object('lost', true)::text;
    END IF;
    -- The block is undone as a whole if a limit is exceeded.
    BEGIN
        FOREACH span IN ARRAY ARRAY['day', 'month'] LOOP
            period := CASE span WHEN 'day' THEN on_day ELSE left(on_day, 7) END;
            FOREACH unit IN ARRAY ARRAY['usd', 'tokens', 'calls'] LOOP
                more := CASE unit WHEN 'usd' THEN may_usd WHEN 'tokens' THEN may_tokens ELSE 1 END;
                most := memoird.limit_of(for_tenant, for_root, span, unit,
                    (limits #>> ARRAY['root', span, unit])::double precision);
                PERFORM memoird.charge(for_tenant, for_root, period, unit, more, most, span, 'root');
                most := memoird.limit_of(for_tenant, '', span, unit, NULL);
                PERFORM memoird.charge(for_tenant, '', period, unit, more, most, span, 'tenant');
            END LOOP;
        END LOOP;
        FOREACH span IN ARRAY ARRAY['day', 'month'] LOOP
            period := CASE span WHEN 'day' THEN on_day ELSE left(on_day, 7) END;
            FOREACH unit IN ARRAY ARRAY['usd', 'tokens', 'calls'] LOOP
                more := CASE unit WHEN 'usd' THEN may_usd WHEN 'tokens' THEN may_tokens ELSE 1 END;
                most := memoird.limit_of('', '', span, unit,
                    (limits #>> ARRAY['fleet', span, unit])::double precision);
                PERFORM memoird.charge_fleet(own, period, unit, more, most, span, lease_ms);
            END LOOP;
        END LOOP;
        INSERT INTO memoird.ledger AS l
            (tenant, root, fingerprint, attempt, owner, at, day, state, tokens, usd)
            SELECT for_tenant, for_root, request, coalesce(max(p.attempt), 0) + 1, own, clock_timestamp(), on_day,
                'open', may_tokens, may_usd
            FROM memoird.ledger p
            WHERE p.tenant = for_tenant AND p.root = for_root AND p.fingerprint = request
            RETURNING l.id INTO call;
    EXCEPTION WHEN SQLSTATE 'MB001' THEN
        RETURN json_build_object('exhausted', SQLERRM::json)::text;
    END;
    RETURN json_build_object('call', call)::text;
END $$;

CREATE FUNCTION memoird.limit_of(
    for_tenant text, for_root text, for_span text, for_unit text, otherwise double precision
) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT c.most FROM memoird.cap c
        WHERE c.tenant = for_tenant AND c.root = for_root AND c.span = for_span AND c.unit = for_unit), otherwise)
$$;

-- Replaces the worst case of a call with what it did cost; NULL keeps the worst case.
CREATE FUNCTION memoird.settle_call(
    for_tenant text, call bigint, how text, real_tokens double precision, real_usd double precision
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    was memoird.ledger;
    less double precision;
    scope text;
    for_period text;
    for_unit text;
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    SELECT * INTO was FROM memoird.ledger l WHERE l.tenant = for_tenant AND l.id = call AND l.state = 'open'
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE memoird.ledger l SET state = 'ended', outcome = how, tokens = coalesce(real_tokens, l.tokens),
        usd = coalesce(real_usd, l.usd) WHERE l.id = call;
    -- In the order of `charge`.
    FOREACH scope IN ARRAY ARRAY['tenant', 'fleet'] LOOP
        FOREACH for_period IN ARRAY ARRAY[was.day, left(was.day, 7)] LOOP
            FOREACH for_unit IN ARRAY ARRAY['usd', 'tokens'] LOOP
                less := CASE for_unit WHEN 'usd' THEN was.usd - coalesce(real_usd, was.usd)
                    ELSE was.tokens - coalesce(real_tokens, was.tokens) END;
                CONTINUE WHEN less = 0;
                IF scope = 'tenant' THEN
                    PERFORM memoird.charge(for_tenant, was.root, for_period, for_unit, -less, NULL, '', '');
                    PERFORM memoird.charge(for_tenant, '', for_period, for_unit, -less, NULL, '', '');
                ELSE
                    UPDATE memoird.tranche t SET amount = t.amount + less WHERE t.owner = was.owner
                        AND t.period = for_period AND t.unit = for_unit AND t.amount + less >= 0;
                    IF NOT FOUND THEN
                        PERFORM memoird.charge('', '', for_period, for_unit, -less, NULL, '', '');
                    END IF;
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

-- Stores a reply before anything else is done with it.
CREATE FUNCTION memoird.store_reply(for_tenant text, for_root text, request text, text_of_reply text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    INSERT INTO memoird.reply (tenant, root, fingerprint, at, body)
        VALUES (for_tenant, for_root, request, clock_timestamp(), text_of_reply)
        ON CONFLICT (tenant, root, fingerprint) DO UPDATE SET body = excluded.body, at = excluded.at;
END $$;

-- Returns a stored reply, or NULL.
CREATE FUNCTION memoird.stored_reply(for_tenant text, for_root text, request text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    kept text;
BEGIN
    PERFORM set_config('memoird.tenant', for_tenant, true);
    SELECT p.body INTO kept FROM memoird.reply p
        WHERE p.tenant = for_tenant AND p.root = for_root AND p.fingerprint = request;
    RETURN kept;
END $$;

INSERT INTO memoird.meta (version, nonce)
    VALUES (2, replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));
