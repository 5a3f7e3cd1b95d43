//! The schema of the lineage database, and how an older one is migrated.
//!
//! `schema/lineage.sql` is read here and nowhere else. `PRAGMA user_version` is the version of the schema.
//! A migration and its version are committed in one transaction, so a crash leaves the version before or
//! the version after. Once released, a migration is never edited, except for its comments.

use std::{
    fs::OpenOptions, io::ErrorKind, os::unix::fs::OpenOptionsExt as _, path::Path, sync::LazyLock,
};

use rusqlite::{Connection, TransactionBehavior};

use super::{LineageError, row_checksum};
use crate::store::db::connection::with_suffix;

/// SQL that brings a database to a version of the schema.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub(super) version: usize,
    sql: &'static str,
}

/// The migrations, oldest first. The first one creates the tables; no database with a version before it was
/// ever released. Each one changes a table, so that a newer schema differs from a damaged version number.
pub(super) const MIGRATIONS: &[Migration] =
    &[Migration { version: 4, sql: include_str!("../../../../schema/lineage.sql") }];

/// Marks a database file as ours (`mmrd`), so that one of another program is never migrated.
const APPLICATION_ID: i32 = 0x6d6d_7264;

/// Returns the newest version that `migrations` lead to.
pub(super) fn newest(migrations: &[Migration]) -> usize {
    migrations.last().map_or(0, |it| it.version)
}

/// Applies the `migrations` that the database lacks.
///
/// A database that is not new is first copied to `<path>.v<version>`.
pub(super) fn migrate(
    conn: &mut Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<(), LineageError> {
    let sql = |source| LineageError::from_sql(path, source);
    let newest = newest(migrations);
    let before = version(conn, path, migrations)?;
    if before == newest {
        return Ok(());
    }
    if before > 0 {
        snapshot(conn, path, before)?;
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    // Another process may have migrated while this one waited for the lock.
    let from = version(&tx, path, migrations)?;
    for migration in migrations.iter().filter(|it| it.version > from) {
        tx.execute_batch(migration.sql).map_err(sql)?;
    }
    row_checksum::checksum_all_rows(&tx).map_err(sql)?;
    tx.pragma_update(None, "user_version", newest).map_err(sql)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
    tx.commit().map_err(sql)
}

/// Returns the version of the database's schema; 0 for a new database.
///
/// Returns an error for a database that `migrations` cannot bring up to date.
pub(super) fn version(
    conn: &Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<usize, LineageError> {
    let sql = |source| LineageError::from_sql(path, source);
    // All of it at one time: another process may create the tables between two reads.
    let snapshot = conn.is_autocommit().then(|| conn.unchecked_transaction());
    let _snapshot = snapshot.transpose().map_err(sql)?;
    let number = |pragma: &str| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let found = number("user_version").map_err(sql)?;
    let id = number("application_id").map_err(sql)?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = conn.query_row(tables, [], |row| row.get(0)).map_err(sql)?;
    let ours = id == i64::from(APPLICATION_ID);
    let known = newest(migrations);
    let wrong = !ours || usize::try_from(found) != Ok(newest(MIGRATIONS));
    if tables > 0 && wrong && has_newest_tables(conn) && known == newest(MIGRATIONS) {
        // No other program has our tables, so a number in the file header is damaged.
        let detail = format!("its tables are memoird's, but its header says {id:#x} and {found}");
        return Err(LineageError::Damaged { path: path.to_owned(), detail });
    }
    if !ours && (found != 0 || id != 0 || tables > 0) {
        return Err(LineageError::ForeignDatabase { path: path.to_owned() });
    }
    let first = migrations.first().map_or(0, |it| it.version);
    match usize::try_from(found) {
        Ok(version) if version > 0 && version < first => Err(LineageError::Damaged {
            path: path.to_owned(),
            detail: format!("its schema {version} was never released"),
        }),
        Ok(version) if version <= known => Ok(version),
        _ => Err(LineageError::NewerSchema { path: path.to_owned(), found, known }),
    }
}

/// Checks that the schema is the newest one and that the file header holds what we write there.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), LineageError> {
    let damaged = |detail| LineageError::Damaged { path: path.to_owned(), detail };
    let sql = |source| LineageError::from_sql(path, source);
    if let Ok(mut file) = std::fs::File::open(path) {
        let mut header = [0; 100];
        if std::io::Read::read_exact(&mut file, &mut header).is_ok()
            && let Some(field) = header_damage(&header)
        {
            return Err(damaged(format!("wrong {field} in the file header")));
        }
    }
    if statements(conn).map_err(sql)? != *EXPECTED_STATEMENTS {
        return Err(damaged("its tables are not those that memoird creates".to_owned()));
    }
    Ok(())
}

/// Names the part of the file header that differs from every database of ours.
///
/// Offsets are those of the [file format](https://www.sqlite.org/fileformat.html#the_database_header).
fn header_damage(header: &[u8; 100]) -> Option<&'static str> {
    // At 18 and 19: write-ahead log or not. At 20: no reserved bytes. Then three constants.
    if header[18..24] != [2, 2, 0, 64, 32, 32] && header[18..24] != [1, 1, 0, 64, 32, 32] {
        return Some("versions");
    }
    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    // Both are 0 while everything is still in the write-ahead log.
    if !matches!((number(44), number(56)), (4, 1) | (0, 0)) {
        return Some("format");
    }
    // We use neither automatic vacuum nor the reserved space.
    if number(52) != 0 || number(64) != 0 || header[72..92].iter().any(|it| *it != 0) {
        return Some("settings");
    }
    None
}

/// Returns the statements that made the tables and indexes, sorted, without comments and white space.
///
/// Comments may change without a migration; and a column that `ALTER TABLE` added is set apart by other
/// white space than one of `CREATE TABLE`.
fn statements(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let bare = |sql: &str| -> String {
        let code = sql.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
        code.flat_map(str::split_whitespace).collect()
    };
    conn.prepare(
        "SELECT type || ' ' || name || ' ' || tbl_name || ' ', ifnull(sql, '') \
         FROM sqlite_schema ORDER BY 1",
    )?
    .query_map([], |row| Ok(row.get::<_, String>(0)? + &bare(&row.get::<_, String>(1)?)))?
    .collect()
}

/// The statements of the newest schema.
static EXPECTED_STATEMENTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let create = || {
        let conn = Connection::open_in_memory()?;
        for migration in MIGRATIONS {
            conn.execute_batch(migration.sql)?;
        }
        statements(&conn)
    };
    create().expect("the migrations are tested")
});

/// Returns whether the tables are those of the newest schema, whatever its version number is.
fn has_newest_tables(conn: &Connection) -> bool {
    statements(conn).is_ok_and(|it| it == *EXPECTED_STATEMENTS)
}

/// Copies the database before its schema changes.
fn snapshot(conn: &Connection, path: &Path, version: usize) -> Result<(), LineageError> {
    let copy = with_suffix(path, &format!(".v{version}"));
    // A copy that a crash interrupted is replaced. A link is removed, not followed.
    let cleared = match std::fs::remove_file(&copy) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    // SQLite would create a file that others can read, but it also fills an empty one.
    let mut open = OpenOptions::new();
    let created = cleared.and_then(|()| open.write(true).create_new(true).mode(0o600).open(&copy));
    let text = created.and_then(|_| copy.to_str().ok_or_else(|| ErrorKind::InvalidFilename.into()));
    let text = text.map_err(|source| LineageError::File { path: copy.clone(), source })?;
    conn.execute("VACUUM INTO ?1", [text])
        .map_err(|source| LineageError::from_sql(path, source))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::hash::ContentHash;

    const STEPS: &[Migration] = &[
        Migration { version: 3, sql: "CREATE TABLE a (x);" },
        Migration { version: 4, sql: "CREATE TABLE b (x); INSERT INTO b SELECT x FROM a;" },
    ];

    fn open(path: &Path) -> Connection {
        Connection::open(path).unwrap()
    }

    /// Fails when a table changed and the version did not: then add a migration instead.
    #[test]
    fn schema_4_never_changes() {
        let hash = ContentHash::of(EXPECTED_STATEMENTS.join("\n")).hex16();
        assert_eq!((newest(MIGRATIONS), hash.as_str()), (4, "0afaaa3691893832"));
    }

    #[test]
    fn comments_and_white_space_do_not_count() {
        let statements_of = |sql: &str| {
            let conn = Connection::open_in_memory().unwrap();
            conn.execute_batch(sql).unwrap();
            statements(&conn).unwrap()
        };
        assert_eq!(
            statements_of("CREATE TABLE a (\n    -- Why.\n    x INTEGER, y)"),
            statements_of("CREATE TABLE a (x INTEGER); ALTER TABLE a ADD COLUMN y")
        );
        assert_ne!(statements_of("CREATE TABLE a (x)"), statements_of("CREATE TABLE a (x TEXT)"));
    }

    #[test]
    fn the_snapshot_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let theirs = dir.path().join("theirs");
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        std::fs::write(&theirs, "mine").unwrap();
        let mut conn = open(&path);
        migrate(&mut conn, &path, &STEPS[..1]).unwrap();
        std::os::unix::fs::symlink(&theirs, dir.path().join("lineage.db.v3")).unwrap();
        migrate(&mut conn, &path, STEPS).unwrap();
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "mine");
        let copy = std::fs::symlink_metadata(dir.path().join("lineage.db.v3")).unwrap();
        assert!(copy.is_file() && copy.len() > 0);
    }

    #[test]
    fn an_older_schema_is_migrated_and_a_copy_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut conn = open(&path);
        migrate(&mut conn, &path, &STEPS[..1]).unwrap();
        conn.execute("INSERT INTO a VALUES (7)", []).unwrap();
        migrate(&mut conn, &path, STEPS).unwrap();
        migrate(&mut conn, &path, STEPS).unwrap();
        let migrated: i64 = conn.query_row("SELECT x FROM b", [], |row| row.get(0)).unwrap();
        assert_eq!(migrated, 7);
        let copy = open(&dir.path().join("lineage.db.v3"));
        let copied: i64 = copy.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(copied, 7);
    }

    #[test]
    fn a_failed_migration_leaves_the_version_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut conn = open(&path);
        migrate(&mut conn, &path, &STEPS[..1]).unwrap();
        let fails = Migration { version: 4, sql: "CREATE TABLE c (x); CREATE TABLE a (x);" };
        let broken = [STEPS[0], fails];
        assert!(migrate(&mut conn, &path, &broken).is_err());
        assert_eq!(version(&conn, &path, STEPS).unwrap(), 3);
        let created: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'c'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(created, 0);
        migrate(&mut conn, &path, STEPS).unwrap();
    }

    #[test]
    fn unknown_schemas_and_databases_of_other_programs_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut conn = open(&path);
        migrate(&mut conn, &path, STEPS).unwrap();
        let newer = migrate(&mut conn, &path, &STEPS[..1]);
        assert!(
            matches!(newer, Err(LineageError::NewerSchema { found: 4, known: 3, .. })),
            "{newer:?}"
        );
        conn.pragma_update(None, "user_version", 2).unwrap();
        let older = migrate(&mut conn, &path, STEPS);
        assert!(matches!(older, Err(LineageError::Damaged { .. })), "{older:?}");

        let other = dir.path().join("other.db");
        let mut conn = open(&other);
        conn.execute_batch("CREATE TABLE notes (x)").unwrap();
        let refused = migrate(&mut conn, &other, STEPS);
        assert!(matches!(refused, Err(LineageError::ForeignDatabase { .. })), "{refused:?}");
    }
}
