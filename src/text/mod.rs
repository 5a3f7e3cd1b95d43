//! Natural language: words, sentences, stems, languages, and the names of days and numbers.
//!
//! Search, the extractive engine, grounding, and the model engine read text through this module, so that
//! each way of reading exists once. Where two ways differ on purpose, both are here and say why.
//!
//! | module | what it does |
//! |---|---|
//! | [`words`] | splits a text into words |
//! | [`stems`] | brings the forms of a word together |
//! | [`scripts`] | knows the scripts that set no spaces between words |
//! | [`spacing`] | sets spaces between those scripts and others |
//! | [`language`] | detects the language of a text |
//! | [`pieces`] | cuts a line into sentences and clauses, for summaries |
//! | [`sentences`] | cuts a text into sentences, for memories and wisdom entries |
//! | [`clauses`] | cuts a text into clauses of words, for grounding |
//! | [`calendar`] | names of months and weekdays |
//! | [`lexicon`] | loads the word lists of `config/lexicon/` |
//! | [`hash`] | hashes words |
//!
//! Pure, and it imports no other module of the crate.

pub(crate) mod calendar;
pub(crate) mod clauses;
pub(crate) mod hash;
pub(crate) mod language;
pub(crate) mod lexicon;
pub(crate) mod pieces;
pub(crate) mod scripts;
pub(crate) mod sentences;
pub(crate) mod spacing;
pub(crate) mod stems;
pub(crate) mod words;
