//! Blocks and statements of a log, and how similar two statements are.
//!
//! - [`blocks`]: splits a log into blocks (a heading, a bullet with its continuation lines, a paragraph) and
//!   blocks into sentences, each with its line numbers, so that every use can be cited.
//! - [`labels`]: labels and titles, such as `Decision: …`.
//! - [`opening_time`]: the time of day with which an entry begins.
//! - [`word_list`]: the words of a text, and the cue phrases among them.
//! - [`terms`]: the content words of a statement, to compare statements.
//! - [`titles`]: shortens a statement to a title.
//! - [`self_contained`]: whether a statement is understandable by itself.
//!
//! All of it is pure; `memories` and `wisdom` call it.

pub(super) mod blocks;
pub(super) mod labels;
pub(super) mod opening_time;
pub(super) mod self_contained;
pub(super) mod terms;
pub(super) mod titles;
pub(super) mod word_list;
