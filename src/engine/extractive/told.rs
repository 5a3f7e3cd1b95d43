//! What sentences tell, one by one, for who has words and no log: a session's.

use super::{
    sections::{self, Class},
    sentence,
};

/// What a sentence tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Something was done, found, measured.
    Outcome,
    /// Something was chosen.
    Decision,
    /// Something is open: blocked, asked, to do.
    Open,
    /// Anything else.
    Other,
}

/// A sentence of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told<'a> {
    /// Its words.
    pub text: &'a str,
    /// What it tells.
    pub tells: Tells,
    /// Whether it says why.
    pub has_reason: bool,
}

/// Cuts one line into sentences and says what each tells.
pub fn told(line: &str) -> Vec<Told<'_>> {
    let pieces = sentence::pieces(line);
    let mut sentences: Vec<(usize, usize)> = Vec::new();
    for piece in &pieces {
        match sentences.last_mut() {
            Some((_, end)) if !piece.opens => *end = piece.end,
            _ => sentences.push((piece.start, piece.end)),
        }
    }
    let read = |(start, end): (usize, usize)| {
        let text = line.get(start..end)?.trim();
        // `Still open: …` says by its label what it is, as a heading does.
        let label = text.split_once(": ").map(|it| it.0);
        let by_label = label.and_then(sections::class_of_head);
        let class = by_label.unwrap_or_else(|| sections::class_of_words(text, false));
        let class = match class {
            Class::Outcome => Tells::Outcome,
            Class::Decision => Tells::Decision,
            Class::Open => Tells::Open,
            Class::Context => Tells::Other,
        };
        let tells = if sections::opens_with_decision(text) { Tells::Decision } else { class };
        let has_reason = sections::gives_reason(text);
        (!text.is_empty()).then_some(Told { text, tells, has_reason })
    };
    sentences.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_tells_one_thing() {
        let line = "Tests pass now. Decided to keep SQLite, because one file is easier to back up. The weather is fine.";
        let told = told(line);
        let told: Vec<_> = told.iter().map(|it| (it.text, it.tells, it.has_reason)).collect();
        let decided = "Decided to keep SQLite, because one file is easier to back up.";
        assert_eq!(told[1], (decided, Tells::Decision, true));
        assert_eq!((told.len(), told[2].1), (3, Tells::Other));
        assert_eq!(super::told("Open questions: which day it is.")[0].tells, Tells::Open);
    }
}
