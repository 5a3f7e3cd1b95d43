//! Words: from text to hashed stems, in the language that a log is written in.
//!
//! A word is a run of letters and digits; scripts that set no spaces (Han, Kana, Thai, …) give
//! overlapping pairs of characters instead. Stop words give nothing. A language is told by its
//! function words or its script; where none can be told, words are only made lower case.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::OnceLock,
};

use rust_stemmers::{Algorithm, Stemmer};

/// A map whose keys are hashes already.
pub(super) type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<IdentityHasher>>;

/// A set of hashes.
pub(super) type HashedSet = std::collections::HashSet<u64, BuildHasherDefault<IdentityHasher>>;

/// Passes a hash through as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdentityHasher(u64);

/// A language that we can stem or whose function words we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Language(usize);

/// Makes stems; keeps what it has seen.
#[derive(Default)]
pub(super) struct StemCache {
    per_language: Vec<LanguageStems>,
}

#[derive(Default)]
struct LanguageStems {
    stemmer: Option<Stemmer>,
    stop: HashedSet,
    /// Hash of a word to hash of its stem; 0 for a stop word.
    stem_by_word: HashedMap<u64>,
    ready: bool,
}

/// The most words that are remembered per language; a log of random bytes must not cost memory.
const CACHED_WORDS_MAX: usize = 400_000;

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash_bytes(bytes);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// Hashes bytes; the same on every machine, and never 0.
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    const MUL: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = 0x243F_6A88_85A3_08D3 ^ (bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(MUL);
    }
    finish(state)
}

/// Mixes two hashes into one; the order matters.
pub(super) fn combine_hashes(a: u64, b: u64) -> u64 {
    finish((a.rotate_left(21) ^ b).wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

fn finish(mut state: u64) -> u64 {
    state ^= state >> 32;
    state = state.wrapping_mul(0xE703_7ED1_A0B4_28DB);
    state ^= state >> 29;
    state | 1
}

impl StemCache {
    /// Calls `each` with the hash of each content stem of `text`, in order; `fold` sees 0 where a
    /// stop word stands, so that pairs do not reach over it by accident of the caller.
    pub(super) fn for_each_stem(
        &mut self,
        language: Language,
        text: &str,
        mut each: impl FnMut(u64),
    ) {
        self.per_language.resize_with(LANGUAGES.len(), LanguageStems::default);
        let vocabulary = &mut self.per_language[language.0];
        vocabulary.prepare(language);
        let mut buffer = String::new();
        for_each_word(text, |word| match word {
            WordToken::Letters(letters) => {
                let stem = vocabulary.stem(letters, &mut buffer);
                if stem != 0 {
                    each(stem);
                }
            }
            WordToken::Pair(pair) => each(hash_bytes(pair.as_bytes())),
        });
    }
}

impl LanguageStems {
    fn prepare(&mut self, language: Language) {
        if std::mem::replace(&mut self.ready, true) {
            return;
        }
        let data = &LANGUAGES[language.0];
        self.stemmer = data.algorithm.map(Stemmer::create);
        let words = data.function_words.split(' ').chain(data.filler_words.split(' '));
        self.stop = words.map(|w| hash_bytes(w.as_bytes())).collect();
    }

    /// Returns the hash of the stem, or 0 for a word that says nothing.
    fn stem(&mut self, word: &str, buffer: &mut String) -> u64 {
        let raw = hash_bytes(word.as_bytes());
        if let Some(&stem) = self.stem_by_word.get(&raw) {
            return stem;
        }
        buffer.clear();
        if word.is_ascii() {
            buffer.push_str(word);
            buffer.make_ascii_lowercase();
        } else {
            buffer.extend(
                word.chars().map(|c| if c == '’' { '\'' } else { c }).flat_map(char::to_lowercase),
            );
        }
        let says_nothing = buffer.chars().nth(1).is_none()
            || !buffer.chars().any(char::is_alphabetic)
            || self.stop.contains(&hash_bytes(buffer.as_bytes()));
        let stem = if says_nothing {
            0
        } else {
            let stem = self.stemmer.as_ref().map(|s| s.stem(buffer));
            hash_bytes(stem.as_deref().unwrap_or(buffer).as_bytes())
        };
        if self.stem_by_word.len() >= CACHED_WORDS_MAX {
            self.stem_by_word.clear();
        }
        self.stem_by_word.insert(raw, stem);
        stem
    }
}

enum WordToken<'t> {
    Letters(&'t str),
    /// Two neighbouring characters of a script without spaces, or a lonely one.
    Pair(&'t str),
}

/// Calls `each` with the words of `text`, in order.
fn for_each_word<'t>(text: &'t str, mut each: impl FnMut(WordToken<'t>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] < 0x80 && !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        let mut lonely: Option<usize> = None;
        let mut end = at;
        for (offset, c) in text[start..].char_indices() {
            let here = start + offset;
            if is_spaceless_script(c) {
                if lonely.is_none() && here > start {
                    break;
                }
                if let Some(previous) = lonely.replace(here) {
                    each(WordToken::Pair(&text[previous..here + c.len_utf8()]));
                }
                end = here + c.len_utf8();
            } else if lonely.is_some() {
                break;
            } else if c.is_alphanumeric() || is_combining_mark(c) {
                end = here + c.len_utf8();
            } else if matches!(c, '\'' | '’') && here > start {
                // Inside a word only: the end does not move before a letter follows.
            } else {
                break;
            }
        }
        if end == start {
            at = start + text[start..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        match lonely {
            None => each(WordToken::Letters(&text[start..end])),
            Some(last) if last == start => each(WordToken::Pair(&text[start..end])),
            Some(_) => {}
        }
        at = end;
    }
}

/// Whether words of this character's script stand without spaces between them.
pub(super) fn is_spaceless_script(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF // Thai, Lao, Burmese, Khmer
        | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

/// Whether this is a combining mark, which belongs to the letter before it.
fn is_combining_mark(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F | 0x0900..=0x0DFF | 0x0591..=0x05C7 | 0x064B..=0x065F)
}

struct LanguageData {
    algorithm: Option<Algorithm>,
    /// Frequent words that tell the language and say nothing else.
    function_words: &'static str,
    /// More words that say nothing: greetings, agreement, filler.
    filler_words: &'static str,
}

impl Language {
    /// No language: words are only made lower case.
    pub(super) const UNKNOWN: Self = Self(0);
    const ENGLISH: Self = Self(1);
    pub(super) const FRENCH: Self = Self(3);
    pub(super) const SPANISH: Self = Self(4);
    pub(super) const ITALIAN: Self = Self(5);
    const RUSSIAN: Self = Self(8);
    const GREEK: Self = Self(9);
    const ARABIC: Self = Self(10);

    /// Returns a number that is the language's own.
    pub(super) fn index(self) -> usize {
        self.0
    }

    /// Returns whether nouns are written with a capital, so that a capital tells no name.
    pub(super) fn capitalises_nouns(self) -> bool {
        self.0 == 2
    }

    /// Tells the language of some lines.
    ///
    /// Latin text without any function word counts as English, the language of most short notes.
    pub(super) fn detect<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        /// Enough words to be sure; reading on would only cost time.
        const WORDS_MAX: usize = 600;
        let table = function_word_table();
        let mut hits = [0_u32; LANGUAGES.len()];
        let (mut words, mut latin, mut scripts) = (0, 0, [0_u32; 3]);
        let mut buffer = String::new();
        for line in lines {
            for_each_word(line, |word| {
                let WordToken::Letters(letters) = word else {
                    words += 1;
                    return;
                };
                words += 1;
                match letters.chars().next().map_or(0, u32::from) {
                    0..=0x24F => latin += 1,
                    0x370..=0x3FF => scripts[1] += 1,
                    0x400..=0x52F => scripts[0] += 1,
                    0x600..=0x6FF => scripts[2] += 1,
                    _ => {}
                }
                buffer.clear();
                if letters.is_ascii() {
                    buffer.push_str(letters);
                    buffer.make_ascii_lowercase();
                } else {
                    buffer.extend(letters.chars().flat_map(char::to_lowercase));
                }
                for &language in
                    table.get(&hash_bytes(buffer.as_bytes())).map_or(&[][..], Vec::as_slice)
                {
                    hits[language] += 1;
                }
            });
            if words > WORDS_MAX {
                break;
            }
        }
        let others = [Self::RUSSIAN, Self::GREEK, Self::ARABIC];
        if let Some(i) = (0..3).find(|&i| scripts[i] * 2 > words.try_into().unwrap_or(u32::MAX)) {
            return others[i];
        }
        if latin * 2 < words {
            return Self::UNKNOWN;
        }
        let best =
            (1..LANGUAGES.len()).max_by_key(|&i| (hits[i], LANGUAGES.len() - i)).unwrap_or(1);
        if hits[best] == 0 { Self::ENGLISH } else { Self(best) }
    }
}

fn function_word_table() -> &'static HashedMap<Vec<usize>> {
    static TABLE: OnceLock<HashedMap<Vec<usize>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = HashedMap::<Vec<usize>>::default();
        for (i, data) in LANGUAGES.iter().enumerate() {
            for word in data.function_words.split(' ').filter(|w| !w.is_empty()) {
                table.entry(hash_bytes(word.as_bytes())).or_default().push(i);
            }
        }
        table
    })
}

/// The languages; the first is none, the last three are told by their script.
static LANGUAGES: [LanguageData; 14] = [
    LanguageData { algorithm: None, function_words: "", filler_words: "" },
    LanguageData {
        algorithm: Some(Algorithm::English),
        function_words: "the and of to in is was are were be been being it its it's this that these those with for \
            from by at on as an or but not no if then than so we i you he she they them his her their our your my \
            me us him who what which when where why how will would can could should shall may might must do does \
            did done have has had having there here into onto over under about after before between through during \
            because while until up down out off again once both each few more most other some such only own same too \
            very just also any all am i'm i've i'd i'll we're we've we'd we'll you're you've you'll he's she's \
            they're they've that's there's what's don't doesn't didn't isn't wasn't aren't weren't can't couldn't \
            won't wouldn't shouldn't haven't hasn't hadn't let's nor per via upon",
        filler_words: "hi hey hello wow oh ah haha hmm ok okay yes yeah yep no nope sure thanks thank bye cool great nice awesome \
            amazing wonderful glad good well really totally definitely absolutely lot lots kind sort thing things get \
            gets got getting go goes going went gonna wanna gotta like much many way bit still even ever now",
    },
    LanguageData {
        algorithm: Some(Algorithm::German),
        function_words: "der die das und ist nicht ein eine einen einem einer eines mit von zu im auf für dem den des sich \
            auch es an werden wurden aus er hat dass sie nach wird bei um am sind noch wie über so zum haben nur oder aber vor \
            zur bis mehr durch man sein wurde wenn was ich wir ihr uns mir mich dich ihm ihn kann war waren als da weil \
            sehr schon hier dort dann doch kein keine habe hatte hatten",
        filler_words: "hallo ja nein danke bitte gut super toll genau",
    },
    LanguageData {
        algorithm: Some(Algorithm::French),
        function_words: "le la les de des du et est un une que qui dans pour pas sur plus avec ce cette ces par au aux il \
            elle on nous vous ils elles sont été être a ont avait mais ou où donc ne se sa son ses leur leurs je tu me \
            te lui y en si comme tout tous très aussi bien fait après avant sans sous entre chez",
        filler_words: "bonjour salut oui non merci bon super",
    },
    LanguageData {
        algorithm: Some(Algorithm::Spanish),
        function_words: "el la los las de del y es un una que en para por con no se su sus lo al más pero como le ya o \
            fue ha han este esta estos estas porque cuando muy sin sobre también me hasta hay donde quien desde todo \
            nos durante todos uno les ni contra otros ese eso ante ellos e mi yo tu te era ser está están",
        filler_words: "hola sí gracias bueno bien vale claro",
    },
    LanguageData {
        algorithm: Some(Algorithm::Italian),
        function_words: "il lo la i gli le di del della dei delle e è un una che in per non con si su al alla ai da dal \
            dalla sono come ma più anche o ha hanno questo questa questi queste nel nella se ci io tu lui lei noi voi \
            loro mi ti era stato essere cosa quando molto dove perché già ancora dopo",
        filler_words: "ciao sì no grazie bene bello",
    },
    LanguageData {
        algorithm: Some(Algorithm::Portuguese),
        function_words: "o a os as de do da dos das e é um uma que em no na nos nas para por com não se seu sua ao à mais \
            mas como foi ele ela isso este esta são ou quando muito já também só pelo pela até sem sobre eu você nós \
            depois então está estão ser tem têm",
        filler_words: "olá oi sim obrigado obrigada bom bem",
    },
    LanguageData {
        algorithm: Some(Algorithm::Dutch),
        function_words: "de het een en van in is dat op te zijn met voor niet aan er om die ook als dan maar uit bij nog \
            naar heeft hij ze wordt door over tot je we ik was werd worden kan deze dit zo wel geen hebben had of zich \
            mijn ons onze omdat toen waar wat",
        filler_words: "hallo hoi ja nee bedankt goed leuk",
    },
    LanguageData {
        algorithm: Some(Algorithm::Russian),
        function_words: "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой от так о для \
            ты же все год вы как бы до или если уже при были был была",
        filler_words: "привет да нет спасибо хорошо",
    },
    LanguageData {
        algorithm: Some(Algorithm::Greek),
        function_words: "και το η ο του της να με για που στο στη από δεν θα είναι τα οι τον την μας σε",
        filler_words: "",
    },
    LanguageData {
        algorithm: Some(Algorithm::Arabic),
        function_words: "في من على إلى أن هذا هذه التي الذي مع عن كان كانت ما لا هو هي",
        filler_words: "",
    },
    LanguageData {
        algorithm: Some(Algorithm::Swedish),
        function_words: "och att det som en på är av för med den till inte om ett han men var jag sig från vi så kan när \
            hade har där eller nu också bara",
        filler_words: "hej tack ja nej",
    },
    LanguageData {
        algorithm: Some(Algorithm::Danish),
        function_words: "og at det som en på er af for med den til ikke om et han men var jeg sig fra vi så kan når hvor \
            havde har der eller nu også kun blev",
        filler_words: "hej tak ja nej",
    },
    LanguageData {
        algorithm: Some(Algorithm::Turkish),
        function_words: "ve bir bu da de için ile çok ama gibi daha ne var olarak sonra kadar olan değil her o ben sen biz",
        filler_words: "",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<u64> {
        let mut found = Vec::new();
        let language = Language::detect([text].into_iter());
        StemCache::default().for_each_stem(language, text, |stem| found.push(stem));
        found
    }

    #[track_caller]
    fn check_same(a: &str, b: &str) {
        assert_eq!(stems(a), stems(b), "{a:?} {b:?}");
        assert!(!stems(a).is_empty(), "{a:?}");
    }

    #[test]
    fn forms_of_a_word_meet() {
        check_same("The tests are failing", "the test was failed");
        check_same("Jamie’s plan", "jamie's plans");
        check_same(
            "die Häuser wurden gebaut und nicht verkauft",
            "Häuser gebaut verkauft und nicht",
        );
        check_same("ÉTÉ à Zürich", "été à zürich");
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(stems("東京都に行く").len(), 5);
        assert_eq!(stems("東").len(), 1);
        assert_eq!(stems("использую базы данных").len(), 3);
    }

    #[track_caller]
    fn check_language(text: &str, expected: usize) {
        assert_eq!(Language::detect([text].into_iter()), Language(expected), "{text:?}");
    }

    #[test]
    fn languages_are_told() {
        check_language("we decided to keep it because of the tests", 1);
        check_language("cargo test --lib", 1);
        check_language("wir haben das nicht mit der Datenbank gemacht", 2);
        check_language("nous avons décidé de ne pas utiliser le serveur dans les tests", 3);
        check_language("se decidió no usar el servidor para las pruebas", 4);
        check_language("東京都に行く", 0);
        check_language("мы решили использовать базу", 8);
    }
}
