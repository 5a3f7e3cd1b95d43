//! Splits a text into tokens: the stems of its words, then its atoms.

use crate::{
    memory::atom::{self, AtomKind},
    text::{
        hash::{combine_hashes, hash_bytes},
        language::Language,
        stems::StemCache,
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// The stem of a word, or two characters of a script without spaces.
    Stem,
    /// A capitalised word inside a sentence.
    Name,
    /// A number, sum, date, or time.
    Figure,
    /// Code, a file, an address, an identifier.
    Technical,
    /// A version, which is both.
    Version,
    /// The last segment of a path or URL.
    LastSegment,
}

impl TokenKind {
    /// All kinds; the place of each is its number in a [`PackedToken`] token.
    const ALL: [Self; 6] =
        [Self::Stem, Self::Name, Self::Figure, Self::Technical, Self::Version, Self::LastSegment];

    /// Returns whether it is a number, a date, or the like.
    pub(super) fn is_exact(self) -> bool {
        matches!(self, Self::Figure | Self::Version)
    }

    /// Returns whether it indicates technical work.
    pub(super) fn is_technical(self) -> bool {
        matches!(self, Self::Technical | Self::Version)
    }

    fn of_atom(kind: AtomKind) -> Self {
        match kind {
            AtomKind::Number
            | AtomKind::Money
            | AtomKind::Percent
            | AtomKind::Date
            | AtomKind::Time => Self::Figure,
            AtomKind::Version => Self::Version,
            AtomKind::Url | AtomKind::Path | AtomKind::Code | AtomKind::Identifier => {
                Self::Technical
            }
            AtomKind::Name => Self::Name,
        }
    }
}

/// A token whose term has a number: the number and the kind in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedToken(u32);

impl PackedToken {
    /// Packs a token. 29 bits are enough for the number of a term.
    pub(super) fn new(number: u32, kind: TokenKind) -> Self {
        Self(number << 3 | kind as u32)
    }

    pub(super) fn term_id(self) -> u32 {
        self.0 >> 3
    }

    pub(super) fn kind(self) -> TokenKind {
        TokenKind::ALL[(self.0 & 7) as usize]
    }
}

/// Calls `each` with the term and the kind of each token of `text`, stems first.
pub(super) fn for_each_token(
    stems: &mut StemCache,
    language: Language,
    text: &str,
    mut each: impl FnMut(u64, TokenKind),
) {
    stems.for_each_stem(language, text, |stem| each(stem, TokenKind::Stem));
    for atom in atom::find_atoms(text) {
        let norm = atom.norm(text);
        each(atom_term_hash(&norm), TokenKind::of_atom(atom.kind));
        if matches!(atom.kind, AtomKind::Url | AtomKind::Path)
            && let Some((_, tail)) = norm.trim_end_matches('/').rsplit_once('/')
            && !tail.is_empty()
        {
            each(atom_term_hash(tail), TokenKind::LastSegment);
        }
    }
}

/// Returns the term of an atom, apart from the stem of the same letters.
pub(super) fn atom_term_hash(norm: &str) -> u64 {
    combine_hashes(hash_bytes(norm.as_bytes()), 0xA7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_order_and_kind() {
        let text = "Priya moved docs/plan.md to v2.1 on 2026-04-02 for €4,100";
        let mut found = Vec::new();
        let language = Language::detect([text].into_iter());
        for_each_token(&mut StemCache::default(), language, text, |term, kind| {
            found.push((term, kind));
        });
        let atoms: Vec<_> = found.iter().filter(|it| it.1 != TokenKind::Stem).copied().collect();
        let expected = [
            ("docs/plan.md", TokenKind::Technical),
            ("plan.md", TokenKind::LastSegment),
            ("v2.1", TokenKind::Version),
            ("2026-04-02", TokenKind::Figure),
        ];
        assert_eq!(atoms[..4], expected.map(|(norm, kind)| (atom_term_hash(norm), kind)));
        assert_eq!(atoms[4].1, TokenKind::Figure);
        assert!(found[..4].iter().all(|it| it.1 == TokenKind::Stem));
    }

    #[test]
    fn packed_tokens_can_be_unpacked() {
        for kind in TokenKind::ALL {
            let packed = PackedToken::new(268_435_455, kind);
            assert_eq!((packed.term_id(), packed.kind()), (268_435_455, kind));
        }
    }
}
