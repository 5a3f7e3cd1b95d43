//! What a memory is: values, their names, and their written forms.
//!
//! The lowest layer. Nothing here reads a file, a clock, or a database. Each type has one written
//! form, and parsing and printing are inverse.
//!
//! - [`period`], [`address`], [`hash`]: names of time, lines, and bytes.
//! - [`log`], [`markdown`]: a daily log and the structure of its lines. [`own_words`]: a text without
//!   what it quotes. [`line_markup`]: what it quotes, by `markup_reader` within a paragraph,
//!   `quoting_element` and `enclosures` over several, and `quoted_speech` in quotation marks.
//! - [`authorship`]: who wrote each line of a log.
//! - [`merge_conflict`]: what a version control system left in a file that it could not merge.
//! - [`atom`]: the numbers, dates, and names in a text that must not change.
//! - [`bare_words`]: what a line says, for comparison.
//! - [`item`], [`document`]: bullets, and the weekly and monthly files made of them.
//! - [`typed`], [`typed_schema`], [`index`], [`wisdom`]: typed memories, `MEMORY.md`, and
//!   `WISDOM.md`.
//! - [`joined`]: a generated file and its hidden file as one text.
//! - [`correction`]: a person's words in place of an item's.
//! - [`decision`], [`decision_merge`]: what people decided, as recorded in `.decisions.jsonl`.
//! - [`frontmatter`]: YAML between two fences. [`yaml`]: the guard in front of every YAML reader.

pub mod address;
pub mod atom;
pub mod authorship;
pub mod bare_words;
pub mod correction;
pub mod decision;
pub mod decision_merge;
pub mod document;
mod enclosures;
pub mod frontmatter;
pub mod hash;
pub mod index;
pub mod item;
pub mod joined;
pub mod line_markup;
pub mod log;
pub mod markdown;
mod markup_reader;
pub mod merge_conflict;
pub mod own_words;
pub mod period;
mod quoted_speech;
mod quoting_element;
pub mod statement;
pub mod typed;
mod typed_record;
pub mod typed_schema;
pub mod wisdom;
pub mod wisdom_block;
pub mod yaml;
