//! What a memory is: values, their names, and their written forms.
//!
//! The lowest layer. Nothing here reads a file, a clock, or a database; each type has one written
//! form, and parsing and printing are inverse.
//!
//! - [`period`], [`address`], [`hash`]: how time, lines, and bytes are named.
//! - [`log`], [`markdown`]: a daily log and the structure of its lines.
//! - [`item`], [`document`]: bullets, and the weekly and monthly files made of them.
//! - [`typed`], [`typed_schema`], [`index`], [`wisdom`]: typed memories, `MEMORY.md`, and `WISDOM.md`.
//! - [`correction`]: a person's words in the place of an item's.
//! - [`decision`]: what people decided, as `.decisions.jsonl` keeps it.
//! - [`frontmatter`]: YAML between two fences, read under limits and written with quotes.

pub mod address;
pub mod atom;
pub mod correction;
pub mod decision;
pub mod document;
pub mod frontmatter;
pub mod hash;
pub mod index;
pub mod item;
pub mod log;
pub mod markdown;
pub mod period;
pub mod typed;
pub mod typed_schema;
pub mod wisdom;
