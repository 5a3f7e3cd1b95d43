//! Finds source lines for a bullet without a citation.
//!
//! Small models forget citations. This module then searches the source lines for those that share most
//! words with the bullet and together contain every number and name in it. If there are none, the
//! bullet stays without a citation and the checks reject it.

use std::collections::BTreeSet;

use super::request_data::{DataBlock, DataLine};
use crate::{
    memory::{address::Citation, atom},
    text::words::significant_words,
};

/// The least share of a bullet's words that its lines must contain.
const WORD_SHARE_MIN: f64 = 0.6;

/// The most lines that a bullet is given.
const LINES_MAX: usize = 3;

/// Returns the lines that support the bullet.
pub fn find_citation(text: &str, blocks: &[DataBlock]) -> Option<Citation> {
    let wanted = significant_words(text);
    if wanted.len() < 2 {
        return None;
    }
    let mut open: BTreeSet<String> = wanted.clone();
    let mut chosen: Vec<&DataLine> = Vec::new();
    while chosen.len() < LINES_MAX && !open.is_empty() {
        let gain = |line: &&DataLine| significant_words(&line.text).intersection(&open).count();
        let lines = blocks.iter().flat_map(|it| &it.lines);
        let best = lines.map(|it| (gain(&it), it)).max_by_key(|(gain, _)| *gain);
        // One shared word may be chance.
        let Some((_, line)) =
            best.filter(|(gain, _)| *gain >= if chosen.is_empty() { 2 } else { 3 })
        else {
            break;
        };
        for word in significant_words(&line.text) {
            open.remove(&word);
        }
        chosen.push(line);
    }
    #[expect(clippy::cast_precision_loss, reason = "a bullet has few words")]
    let share = (wanted.len() - open.len()) as f64 / wanted.len() as f64;
    let holds = |raw: &str| chosen.iter().any(|it| it.text.contains(raw));
    let has_all_atoms = atom::find_atoms(text).iter().all(|it| holds(it.text(text)));
    if share < WORD_SHARE_MIN || !has_all_atoms {
        return None;
    }
    let mut citations = chosen.into_iter().map(|it| it.citation.clone());
    let first = citations.next()?;
    Some(citations.fold(first, |mut all, it| {
        all.merge(&it);
        all
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::model::request_data, memory::log::DailyLog, privacy};

    #[track_caller]
    fn check(bullet: &str, expected: Option<&str>) {
        let text = "- Alice moved the importer to SQLite\n- Bob measured 3.2 s per GB on the importer\n- Lunch";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let blocks = request_data::blocks_of_logs(&[privacy::sanitize(
            &log,
            &privacy::PrivacyRules::default(),
        )]);
        assert_eq!(
            find_citation(bullet, &blocks).map(|it| it.to_string()).as_deref(),
            expected,
            "{bullet}"
        );
    }

    #[test]
    fn a_bullet_gets_its_lines_or_none() {
        check("The importer moved to SQLite (Alice)", Some("2026-04-02:1"));
        check("Bob measured 3.2 s per GB", Some("2026-04-02:2"));
        check("Bob measured 3.4 s per GB on the importer", None);
        check("The office moved to Vienna last spring", None);
        check("Lunch", None);
    }
}
