//! Scripts that set no spaces between words, and combining marks.

/// Returns whether words in the script of this character have no spaces between them.
pub(crate) fn is_spaceless(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF // Thai, Lao, Burmese, Khmer
        | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF // Kana, Han
        | 0x20000..=0x3FFFF) // Rare Han
}

/// Returns whether this is a Chinese character, which may be a word of its own.
pub(crate) fn is_ideograph(c: char) -> bool {
    is_spaceless(c) && u32::from(c) >= 0x3400
}

/// Returns whether this is a letter of a Korean syllable.
pub(crate) fn is_hangul_letter(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x11FF)
}

/// Returns whether this is a Korean syllable.
pub(crate) fn is_hangul_syllable(c: char) -> bool {
    matches!(u32::from(c), 0xAC00..=0xD7A3)
}

/// Returns whether this is a combining mark, which belongs to the letter before it.
pub(super) fn is_combining_mark(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F | 0x0900..=0x0DFF | 0x0591..=0x05C7 | 0x064B..=0x065F)
}

/// Returns whether most of a text is in a script without spaces.
pub(crate) fn is_mostly_spaceless(text: &str) -> bool {
    // Latin, Cyrillic, Arabic and their neighbours take two bytes at most.
    if text.bytes().all(|b| b < 0xE0) {
        return false;
    }
    let (mut spaceless, mut all) = (0_usize, 0_usize);
    for c in text.chars().take(200).filter(|c| c.is_alphanumeric()) {
        all += 1;
        spaceless += usize::from(is_spaceless(c));
    }
    spaceless * 2 > all
}
