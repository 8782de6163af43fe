package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// schemaLock is the advisory lock of who makes the tables: CREATE ... IF NOT
// EXISTS by two at once fails for one of them.
const schemaLock = 0x6f67775f736368 // "ogw_sch"

// staleSlots is how long the slot of a client that no longer commits is kept.
// One that comes back after that makes another.
const staleSlots = "1 day"

// schema makes the tables. Values are not compressed: contents are what users
// store, and checksummed bytes rarely shrink. used of ogw_slots is never
// compared with another machine's clock, except to clear away old rows.
const schema = `
CREATE TABLE IF NOT EXISTS ogw_pairs (
	store text COLLATE "C" NOT NULL,
	key bytea NOT NULL,
	value bytea NOT NULL,
	version bigint NOT NULL,
	PRIMARY KEY (store, key)
);
ALTER TABLE ogw_pairs ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE SEQUENCE IF NOT EXISTS ogw_versions;
CREATE TABLE IF NOT EXISTS ogw_slots (
	store text COLLATE "C" NOT NULL,
	id bytea NOT NULL,
	number bigint NOT NULL,
	kind "char" NOT NULL,
	used timestamptz NOT NULL,
	PRIMARY KEY (store, id)
) WITH (fillfactor = 50);
`

// Functions have a version in their name: clients of two versions may use one
// store side by side.

// commitFunction returns the version of what was set, 0 if nothing was; -1 if a
// read does not hold any more, an expected value is not there (NULL expects
// none), or a lock is not free and may_wait is false; -2 if the slot is not at
// the number that the caller knows. Each of its statements has a snapshot of its
// own, as READ COMMITTED has it: those after the locks see what was committed
// before them.
const commitFunction = `
CREATE OR REPLACE FUNCTION ogw_commit_v4(
	in_store text,
	lock_ids bigint[], lock_shared boolean[], may_wait boolean,
	read_keys bytea[], read_versions bigint[],
	range_starts bytea[], range_ends bytea[], range_counts bigint[],
	expect_keys bytea[], expect_values bytea[],
	set_keys bytea[], set_values bytea[], delete_keys bytea[],
	slot bytea, slot_number bigint
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $ogw$
DECLARE
	i integer;
	n bigint;
	v bigint := 0;
	free boolean := true;
BEGIN
	UPDATE ogw_slots SET number = slot_number + 1, kind = 'c', used = now()
		WHERE store = in_store AND id = slot AND number = slot_number;
	IF NOT FOUND THEN
		RETURN -2;
	END IF;
	FOR i IN 1 .. cardinality(lock_ids) LOOP
		IF may_wait AND lock_shared[i] THEN
			PERFORM pg_advisory_xact_lock_shared(lock_ids[i]);
		ELSIF may_wait THEN
			PERFORM pg_advisory_xact_lock(lock_ids[i]);
		ELSIF lock_shared[i] THEN
			free := pg_try_advisory_xact_lock_shared(lock_ids[i]);
		ELSE
			free := pg_try_advisory_xact_lock(lock_ids[i]);
		END IF;
		IF NOT free THEN
			PERFORM ogw_undo_v1(in_store, slot, slot_number);
			RETURN -1;
		END IF;
	END LOOP;
	PERFORM 1 FROM unnest(read_keys, read_versions) AS r(key, version)
		LEFT JOIN ogw_pairs p ON p.store = in_store AND p.key = r.key
		WHERE coalesce(p.version, 0) <> r.version LIMIT 1;
	IF FOUND THEN
		PERFORM ogw_undo_v1(in_store, slot, slot_number);
		RETURN -1;
	END IF;
	PERFORM 1 FROM unnest(expect_keys, expect_values) AS e(key, value)
		LEFT JOIN ogw_pairs p ON p.store = in_store AND p.key = e.key
		WHERE p.value IS DISTINCT FROM e.value LIMIT 1;
	IF FOUND THEN
		PERFORM ogw_undo_v1(in_store, slot, slot_number);
		RETURN -1;
	END IF;
	FOR i IN 1 .. cardinality(range_starts) LOOP
		SELECT count(*) INTO n FROM ogw_pairs p
			WHERE p.store = in_store AND p.key >= range_starts[i] AND p.key < range_ends[i];
		IF n <> range_counts[i] THEN
			PERFORM ogw_undo_v1(in_store, slot, slot_number);
			RETURN -1;
		END IF;
	END LOOP;
	DELETE FROM ogw_pairs p WHERE p.store = in_store AND p.key = ANY(delete_keys);
	IF cardinality(set_keys) > 0 THEN
		v := nextval('ogw_versions');
		INSERT INTO ogw_pairs (store, key, value, version)
			SELECT in_store, s.key, s.value, v FROM unnest(set_keys, set_values) AS s(key, value)
			ON CONFLICT (store, key) DO UPDATE SET value = excluded.value, version = excluded.version;
	END IF;
	RETURN v;
END
$ogw$;
`

// commitsFunction is commitFunction for several commits at once, by number, of which none
// depends on another one, and none scanned. It waits for the locks wait_ids, which are exclusive
// and come first, and for no other one. Of a pair that several set, the last one that holds counts. It
// returns the version of all that was set, and which commits did nothing: their slot is gone, a
// lock was not free, or a read does not hold. Slots of the last two are moved too, as by a fence.
//
// What the locks of one commit keep others from, no statement of another one does. Pairs are
// looked up one by one: a join might read the whole table.
const commitsFunction = `
CREATE OR REPLACE FUNCTION ogw_commits_v2(
	in_store text, slot_ids bytea[], slot_numbers bigint[],
	wait_ids bigint[], lock_ids bigint[], lock_shared boolean[], locks bigint[], lock_of integer[],
	read_keys bytea[], read_versions bigint[], read_of integer[],
	expect_keys bytea[], expect_values bytea[], expect_of integer[],
	set_keys bytea[], set_values bytea[], set_of integer[],
	delete_keys bytea[], delete_of integer[],
	OUT out_version bigint, OUT out_changed integer[], OUT out_busy integer[], OUT out_gone integer[]
) LANGUAGE plpgsql VOLATILE AS $ogw$
DECLARE
	i integer;
	taken bigint[];
	failed integer[];
BEGIN
	out_version := 0;
	out_busy := '{}';
	WITH moved AS (
		UPDATE ogw_slots s SET number = s.number + 1, kind = 'c', used = now()
			FROM unnest(slot_ids, slot_numbers) WITH ORDINALITY AS m(id, number, nth)
			WHERE s.store = in_store AND s.id = m.id AND s.number = m.number
			RETURNING m.nth
	)
	SELECT coalesce(array_agg(n), '{}') INTO out_gone
		FROM generate_series(1, cardinality(slot_ids)) AS n WHERE n NOT IN (SELECT nth FROM moved);
	FOR i IN 1 .. cardinality(wait_ids) LOOP
		PERFORM pg_advisory_xact_lock(wait_ids[i]);
	END LOOP;
	SELECT coalesce(array_agg(l.id), '{}') INTO taken FROM (
		SELECT u.id, CASE WHEN u.shared THEN pg_try_advisory_xact_lock_shared(u.id) ELSE pg_try_advisory_xact_lock(u.id) END AS free
			FROM unnest(lock_ids, lock_shared) AS u(id, shared)
		) AS l WHERE NOT l.free;
	IF cardinality(taken) > 0 THEN
		SELECT coalesce(array_agg(DISTINCT m.nth), '{}') INTO out_busy
			FROM unnest(locks, lock_of) AS m(id, nth) WHERE m.id = ANY(taken);
	END IF;
	SELECT coalesce(array_agg(DISTINCT c.nth), '{}') INTO out_changed FROM (
		SELECT r.nth FROM unnest(read_keys, read_versions, read_of) AS r(key, version, nth)
			WHERE coalesce((SELECT p.version FROM ogw_pairs p WHERE p.store = in_store AND p.key = r.key), 0) <> r.version
		UNION ALL
		SELECT e.nth FROM unnest(expect_keys, expect_values, expect_of) AS e(key, value, nth)
			WHERE (SELECT p.value FROM ogw_pairs p WHERE p.store = in_store AND p.key = e.key) IS DISTINCT FROM e.value
		) AS c;
	failed := out_gone || out_busy || out_changed;
	IF cardinality(delete_keys) > 0 THEN
		DELETE FROM ogw_pairs p WHERE p.store = in_store AND p.key = ANY(ARRAY(
			SELECT d.key FROM unnest(delete_keys, delete_of) AS d(key, nth) WHERE d.nth <> ALL(failed)));
	END IF;
	IF cardinality(set_keys) > 0 THEN
		out_version := nextval('ogw_versions');
		INSERT INTO ogw_pairs (store, key, value, version)
			SELECT DISTINCT ON (s.key) in_store, s.key, s.value, out_version
				FROM unnest(set_keys, set_values, set_of) AS s(key, value, nth)
				WHERE s.nth <> ALL(failed) ORDER BY s.key, s.nth DESC
			ON CONFLICT (store, key) DO UPDATE SET value = excluded.value, version = excluded.version;
	END IF;
	IF cardinality(out_busy) + cardinality(out_changed) > 0 THEN
		UPDATE ogw_slots s SET kind = 'f' WHERE s.store = in_store AND s.id = ANY(ARRAY(
			SELECT slot_ids[n] FROM unnest(out_busy || out_changed) AS n WHERE n <> ALL(out_gone)));
	END IF;
END
$ogw$;
`

// undoFunction gives the slot its number back, so that a commit that changed
// nothing leaves no trace.
const undoFunction = `
CREATE OR REPLACE FUNCTION ogw_undo_v1(in_store text, slot bytea, slot_number bigint)
RETURNS text LANGUAGE plpgsql VOLATILE AS $ogw$
BEGIN
	UPDATE ogw_slots SET number = slot_number WHERE store = in_store AND id = slot;
	RETURN 'changed';
END
$ogw$;
`

// holdFunction takes locks that outlive the transaction, or none and returns false if one
// was not free for long. From then on the server ends a connection that says nothing for
// silence, be it that the client stopped while it waited.
const holdFunction = `
CREATE OR REPLACE FUNCTION ogw_hold_v2(lock_ids bigint[], lock_shared boolean[], silence text)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $ogw$
BEGIN
	PERFORM set_config('idle_session_timeout', silence, false);
	FOR i IN 1 .. cardinality(lock_ids) LOOP
		IF lock_shared[i] THEN
			PERFORM pg_advisory_lock_shared(lock_ids[i]);
		ELSE
			PERFORM pg_advisory_lock(lock_ids[i]);
		END IF;
	END LOOP;
	RETURN true;
EXCEPTION WHEN lock_not_available OR deadlock_detected OR out_of_memory THEN
	PERFORM pg_advisory_unlock_all();
	RETURN false;
END
$ogw$;
`

// parts are what a store needs, in the order in which it is made: each where the question finds
// nothing. What is there is not touched: ALTER TABLE would wait for all who read, and have
// others wait.
var parts = []struct{ there, make string }{
	{"SELECT to_regclass('ogw_pairs') IS NOT NULL AND to_regclass('ogw_slots') IS NOT NULL", schema},
	{"SELECT to_regproc('ogw_undo_v1') IS NOT NULL", undoFunction},
	{"SELECT to_regproc('ogw_hold_v2') IS NOT NULL", holdFunction},
	{"SELECT to_regproc('ogw_commit_v4') IS NOT NULL", commitFunction},
	{"SELECT to_regproc('ogw_commits_v2') IS NOT NULL", commitsFunction},
}

// oldestServer ends sessions that are idle (holdFunction).
const oldestServer = 14

// checkServer returns an error for a server of a version that is too old.
func checkServer(version string) error {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldestServer {
		return fmt.Errorf("the server has version %s, it needs %d at least", version, oldestServer)
	}
	return nil
}

// makeTables makes what is missing, one client at a time.
func makeTables(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := checkServer(tx.Conn().PgConn().ParameterStatus("server_version")); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		for _, part := range parts {
			var there bool
			err := tx.QueryRow(ctx, part.there).Scan(&there)
			if err == nil && !there {
				_, err = tx.Exec(ctx, part.make, pgx.QueryExecModeSimpleProtocol)
			}
			if err != nil {
				return fmt.Errorf("making the tables: %w", err)
			}
		}
		_, err := tx.Exec(ctx, "DELETE FROM ogw_slots WHERE used < now() - $1::interval", staleSlots)
		return err
	})
}
