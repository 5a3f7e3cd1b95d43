//! What is taken out of the lineage beside the bytes of versions, when a person wants lines forgotten:
//! names and reasons that hold their words.

use rusqlite::params;

use super::{Lineage, LineageError, record};

impl Lineage {
    /// Gives a file that is forgotten another name wherever it was recorded: that of a typed memory is
    /// made of its words.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn forget_name(&mut self, path: &str, instead: &str) -> Result<(), LineageError> {
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

    /// Blanks the reasons of receipts that hold what is forgotten.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn forget_reasons(&mut self, holds: &dyn Fn(&str) -> bool) -> Result<(), LineageError> {
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
