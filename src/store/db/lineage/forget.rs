//! Removes names and reasons that contain words a person wants forgotten. The bytes of versions are removed
//! in [`super::history`].

use rusqlite::params;

use super::{Lineage, LineageError, record};

impl Lineage {
    /// Renames a forgotten file in every record, because the name of a typed memory is made of its words.
    pub(crate) fn forget_name(&mut self, path: &str, instead: &str) -> Result<(), LineageError> {
        self.write(|tx| {
            record::rename_path(tx, path, instead)?;
            for sql in [
                "UPDATE version SET path = ?2 WHERE path = ?1",
                "UPDATE activity SET path = ?2 WHERE path = ?1",
                "UPDATE intent SET target = ?2 WHERE target = ?1",
                "UPDATE intent SET source = ?2 WHERE source = ?1",
            ] {
                tx.execute(sql, params![path, instead])?;
            }
            tx.execute("DELETE FROM proposal WHERE target = ?1", [path])?;
            Ok(())
        })
    }

    /// Deletes the reasons of receipts for which `holds` is true.
    pub(crate) fn forget_reasons(
        &mut self,
        holds: &dyn Fn(&str) -> bool,
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            let reasons: Vec<String> = tx
                .prepare("SELECT DISTINCT reason FROM activity WHERE reason IS NOT NULL")?
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for reason in reasons.iter().filter(|it| holds(it)) {
                tx.execute("UPDATE activity SET reason = NULL WHERE reason = ?1", [reason])?;
            }
            Ok(())
        })
    }
}
