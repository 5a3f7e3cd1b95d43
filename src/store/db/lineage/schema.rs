//! The schema of the lineage database and how an older one is brought up to date.
//!
//! The files in `schema/lineage/` are read here and nowhere else. `PRAGMA user_version` counts
//! those that have been applied; each is applied in one transaction together with its number, so a
//! crash leaves the version before or the version after. A file is never edited once it has been
//! released: databases of every version are out there.

use std::{
    fs::OpenOptions, io::ErrorKind, os::unix::fs::OpenOptionsExt as _, path::Path, sync::LazyLock,
};

use rusqlite::{Connection, TransactionBehavior};

use super::LineageError;

/// The steps from an empty file to the newest schema, in order. Each changes a table, so that a
/// number in the head of the file that was damaged is told from a newer schema.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../../../schema/lineage/0001.sql"),
    include_str!("../../../../schema/lineage/0002.sql"),
    include_str!("../../../../schema/lineage/0003.sql"),
    include_str!("../../../../schema/lineage/0004.sql"),
];

/// Marks a database file as ours (`mmrd`), so that a stranger's is never migrated.
const APPLICATION_ID: i32 = 0x6d6d_7264;

/// Applies those of `migrations` that the database lacks.
///
/// A database that held anything is first copied to `<path>.v<version>`.
pub(super) fn migrate(
    conn: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), LineageError> {
    let sql = |source| LineageError::from_sql(path, source);
    let known = migrations.len();
    if version(conn, path, known)? == known {
        return Ok(());
    }
    let before = version(conn, path, known)?;
    if before > 0 {
        snapshot(conn, path, before)?;
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    // Another process may have migrated while this one waited for the lock.
    let from = version(&tx, path, known)?;
    for (migration, number) in migrations.iter().zip(1_i64..).skip(from) {
        tx.execute_batch(migration).map_err(sql)?;
        tx.pragma_update(None, "user_version", number).map_err(sql)?;
    }
    crate::store::db::lineage::row_checksum::checksum_all_rows(&tx).map_err(sql)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
    tx.commit().map_err(sql)
}

/// Returns how many migrations the database has had.
pub(super) fn version(conn: &Connection, path: &Path, known: usize) -> Result<usize, LineageError> {
    let sql = |source| LineageError::from_sql(path, source);
    let number = |pragma: &str| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let found = number("user_version").map_err(sql)?;
    let id = number("application_id").map_err(sql)?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = conn.query_row(tables, [], |row| row.get(0)).map_err(sql)?;
    let ours = id == i64::from(APPLICATION_ID);
    let wrong = !ours || usize::try_from(found) != Ok(MIGRATIONS.len());
    if tables > 0 && wrong && has_newest_tables(conn) && known == MIGRATIONS.len() {
        // Nobody else has our tables: a number in the head of the file is damaged.
        let detail = format!("its tables are ours, but its marks are {id:#x} and {found}");
        return Err(LineageError::Damaged { path: path.to_owned(), detail });
    }
    if !ours && (found != 0 || id != 0 || tables > 0) {
        return Err(LineageError::ForeignDatabase { path: path.to_owned() });
    }
    match usize::try_from(found) {
        Ok(version) if version <= known => Ok(version),
        _ => Err(LineageError::NewerSchema { path: path.to_owned(), found, known }),
    }
}

/// Checks that the schema is the newest one, word for word, and that the head of the file says what
/// we wrote in it.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), LineageError> {
    let damaged = |detail| LineageError::Damaged { path: path.to_owned(), detail };
    let sql = |source| LineageError::from_sql(path, source);
    if let Ok(mut file) = std::fs::File::open(path) {
        let mut head = [0; 100];
        if std::io::Read::read_exact(&mut file, &mut head).is_ok()
            && let Some(what) = header_damage(&head)
        {
            return Err(damaged(format!("the head of the file is wrong: {what}")));
        }
    }
    if statements(conn).map_err(sql)? != *EXPECTED_STATEMENTS {
        return Err(damaged("its tables are not those that memoird makes".to_owned()));
    }
    Ok(())
}

/// Names what in the first 100 bytes is not as every database of ours has it.
fn header_damage(head: &[u8; 100]) -> Option<&'static str> {
    // At 18 and 19: a write-ahead log. At 20: no reserved bytes. Then three numbers that never change.
    if head[18..24] != [2, 2, 0, 64, 32, 32] && head[18..24] != [1, 1, 0, 64, 32, 32] {
        return Some("versions");
    }
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    // Both are 0 while all that was ever written stands in the write-ahead log.
    if !matches!((number(44), number(56)), (4, 1) | (0, 0)) {
        return Some("format");
    }
    // Neither is used: vacuum is not automatic.
    if number(52) != 0 || number(64) != 0 || head[72..92].iter().any(|it| *it != 0) {
        return Some("settings");
    }
    None
}

/// Returns the statements that made the tables and indexes, sorted.
fn statements(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    conn.prepare(
        "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || ifnull(sql, '') \
         FROM sqlite_schema ORDER BY 1",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}

/// The statements of the newest schema.
static EXPECTED_STATEMENTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let made = || {
        let conn = Connection::open_in_memory()?;
        for migration in MIGRATIONS {
            conn.execute_batch(migration)?;
        }
        statements(&conn)
    };
    made().expect("the migrations are tested")
});

/// Returns whether the tables are those of the newest schema, whatever the number of it says.
fn has_newest_tables(conn: &Connection) -> bool {
    statements(conn).is_ok_and(|it| it == *EXPECTED_STATEMENTS)
}

/// Copies the database aside before its schema changes.
fn snapshot(conn: &Connection, path: &Path, version: usize) -> Result<(), LineageError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}"));
    // A copy left by an attempt that a crash ended is made anew; a link is not followed.
    let cleared = match std::fs::remove_file(&name) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    // SQLite fills an empty file but would make a new one readable by others.
    let mut open = OpenOptions::new();
    let made = cleared.and_then(|()| open.write(true).create_new(true).mode(0o600).open(&name));
    let text = made.and_then(|_| name.to_str().ok_or_else(|| ErrorKind::InvalidFilename.into()));
    let text =
        text.map_err(|source| LineageError::File { path: Path::new(&name).to_owned(), source })?;
    conn.execute("VACUUM INTO ?1", [text])
        .map_err(|source| LineageError::from_sql(path, source))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[&str] =
        &["CREATE TABLE a (x);", "CREATE TABLE b (x); INSERT INTO b SELECT x FROM a;"];

    fn open(path: &Path) -> Connection {
        Connection::open(path).unwrap()
    }

    #[test]
    fn the_copy_aside_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let theirs = dir.path().join("theirs");
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        std::fs::write(&theirs, "mine").unwrap();
        let mut conn = open(&path);
        migrate(&mut conn, &path, &STEPS[..1]).unwrap();
        std::os::unix::fs::symlink(&theirs, dir.path().join("lineage.db.v1")).unwrap();
        migrate(&mut conn, &path, STEPS).unwrap();
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "mine");
        let copy = std::fs::symlink_metadata(dir.path().join("lineage.db.v1")).unwrap();
        assert!(copy.is_file() && copy.len() > 0);
    }

    #[test]
    fn an_older_schema_is_brought_up_to_date_and_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut conn = open(&path);
        migrate(&mut conn, &path, &STEPS[..1]).unwrap();
        conn.execute("INSERT INTO a VALUES (7)", []).unwrap();
        migrate(&mut conn, &path, STEPS).unwrap();
        migrate(&mut conn, &path, STEPS).unwrap();
        let moved: i64 = conn.query_row("SELECT x FROM b", [], |row| row.get(0)).unwrap();
        assert_eq!(moved, 7);
        let kept = open(&dir.path().join("lineage.db.v1"));
        let kept: i64 = kept.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 7);
    }

    #[test]
    fn a_migration_that_fails_leaves_the_version_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut conn = open(&path);
        migrate(&mut conn, &path, &STEPS[..1]).unwrap();
        let broken = [STEPS[0], "CREATE TABLE c (x); CREATE TABLE a (x);"];
        assert!(migrate(&mut conn, &path, &broken).is_err());
        assert_eq!(version(&conn, &path, 2).unwrap(), 1);
        let made: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'c'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(made, 0);
        migrate(&mut conn, &path, STEPS).unwrap();
    }

    #[test]
    fn a_newer_schema_and_a_strangers_database_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut conn = open(&path);
        migrate(&mut conn, &path, STEPS).unwrap();
        let newer = migrate(&mut conn, &path, &STEPS[..1]);
        assert!(
            matches!(newer, Err(LineageError::NewerSchema { found: 2, known: 1, .. })),
            "{newer:?}"
        );

        let other = dir.path().join("other.db");
        let mut conn = open(&other);
        conn.execute_batch("CREATE TABLE notes (x)").unwrap();
        let refused = migrate(&mut conn, &other, STEPS);
        assert!(matches!(refused, Err(LineageError::ForeignDatabase { .. })), "{refused:?}");
    }
}
