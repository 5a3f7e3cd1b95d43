//! Reads the rows of tables as statements: the first cell, then the others with the heads of their columns.

use crate::text::lexicon::SECTIONS;

/// The table that is being read.
#[derive(Default)]
pub(super) struct OpenTable {
    /// The heads of its columns, without markup; empty if it has none.
    heads: Vec<String>,
    /// The line with the heads.
    header_line: Option<u32>,
    /// The first cell of the row above and its line: rows of one group leave it empty.
    row_label: Option<(String, u32)>,
}

/// The words of a row.
pub(super) struct RowText {
    pub(super) text: String,
    /// The line with the heads among its words.
    pub(super) header_line: Option<u32>,
    /// The end of the words of an earlier row, and its line.
    pub(super) group: Option<(usize, u32)>,
}

impl OpenTable {
    pub(super) fn with_heads(heads: Vec<String>, line: u32) -> Self {
        Self { heads, header_line: Some(line), row_label: None }
    }

    pub(super) fn has_heads(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Returns the words of a row of the table.
    pub(super) fn read_row(&mut self, cells: &[String], line: u32) -> RowText {
        let mut row = RowText { text: String::new(), header_line: None, group: None };
        let mut width = cells.iter().filter(|it| says_something(it)).count();
        let first = self.first_column(cells);
        if cells.first().is_some_and(String::is_empty) && !self.heads.is_empty() {
            if let Some((label, at)) = self.row_label.as_ref().filter(|_| width > 0) {
                row.text.push_str(label);
                row.group = Some((label.len(), *at));
                width += 1;
            }
        } else if let Some(cell) = cells.get(first).filter(|it| says_something(it)) {
            self.row_label = Some((cell.clone(), line));
        }
        let named = |at: usize, cell: &str| {
            let head = self.heads.get(at).filter(|it| !it.is_empty())?;
            let lower = head.to_lowercase();
            // A cell that repeats its head, and a head such as `Value`, say nothing more.
            let says = !SECTIONS.unspecific_columns.contains(&&lower[..])
                && !cell.to_lowercase().contains(&lower);
            says.then_some(head)
        };
        let listed = cells.iter().skip(first + 1).any(|it| it.contains([',', ';']));
        for (at, cell) in cells.iter().enumerate().skip(first).filter(|(_, it)| says_something(it))
        {
            let is_first = row.text.is_empty();
            let head = named(at, cell).filter(|_| {
                if is_first {
                    // A bare number names nothing.
                    is_bare(cell) && !cell.contains(char::is_alphabetic)
                } else {
                    width > 2 || is_bare(cell)
                }
            });
            if !is_first {
                let opens = row.group.is_some_and(|it| it.0 == row.text.len());
                let first_value = opens || at == first + 1 || !row.text.contains(": ");
                row.text.push_str(if first_value {
                    ": "
                } else if listed {
                    "; "
                } else {
                    ", "
                });
            }
            if let Some(head) = head {
                row.text.push_str(head);
                row.text.push_str(if cell.split_whitespace().count() > 3 { ": " } else { " " });
                row.header_line = self.header_line;
            }
            row.text.push_str(cell);
        }
        row
    }

    /// Returns the column that names the row: the first, unless it only numbers the rows.
    fn first_column(&self, cells: &[String]) -> usize {
        let numbers =
            |it: &String| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let head = self.heads.first().map(|it| it.to_lowercase()).unwrap_or_default();
        usize::from(
            cells.len() > 2
                && cells.first().is_some_and(numbers)
                && SECTIONS.number_columns.contains(&&head[..]),
        )
    }
}

/// Returns the cells of a row.
pub(super) fn cells(row: &str) -> impl Iterator<Item = &str> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(str::trim)
}

/// Returns whether a cell is a number, a mark, or a word, which says nothing without its column's head.
fn is_bare(cell: &str) -> bool {
    cell.chars().count() <= 8 || cell.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a cell holds more than a placeholder.
fn says_something(cell: &str) -> bool {
    !matches!(cell, "" | "-" | "–" | "—" | "--" | "n/a" | "N/A" | "/" | "…" | "...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rows: &[&str], expected: &[&str]) {
        let cells = |row: &&str| row.split('|').map(|it| it.trim().to_owned()).collect::<Vec<_>>();
        let mut table = OpenTable::with_heads(cells(&rows[0]), 1);
        let found: Vec<_> = rows[1..].iter().map(|it| table.read_row(&cells(it), 2).text).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn rows_name_their_columns() {
        check(&["Service | Status | Notes", "Boiler | ✅ | calm"], &["Boiler: Status ✅, calm"]);
        check(&["Metric | Value", "Length | 412 m"], &["Length: 412 m"]);
        check(&["Account | Today", "Harbour | 7"], &["Harbour: Today 7"]);
        check(
            &["Page | Link", "Plan | https://example.org/plan"],
            &["Plan: https://example.org/plan"],
        );
        check(
            &["Tool | Best for | Limits", "Rope | Towing barges | Frays, and needs to be dry"],
            &["Rope: Best for Towing barges; Limits: Frays, and needs to be dry"],
        );
        check(&["# | Task | Status", "3 | Paint the hull | ⏳"], &["Paint the hull: Status ⏳"]);
        check(&["Week | Boats | Crew", "12 | 4 | 9"], &["Week 12: Boats 4, Crew 9"]);
        check(&["Service | Status | Notes", "Boiler | - | "], &["Boiler"]);
        check(&["Status | Boat", "Status open | Aurora"], &["Status open: Boat Aurora"]);
    }

    #[test]
    fn rows_of_a_group_repeat_its_name() {
        check(
            &["Pier | Boat | Berth", "North | Aurora | 4", " | Tern | 5"],
            &["North: Boat Aurora, Berth 4", "North: Boat Tern, Berth 5"],
        );
        let mut table = OpenTable::default();
        let row = table.read_row(&["a".into(), String::new(), "b".into()], 1);
        assert_eq!((&row.text[..], row.header_line), ("a: b", None));
    }
}
