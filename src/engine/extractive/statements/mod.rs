//! Blocks and statements of a log, and how similar two statements are.
//!
//! - [`blocks`]: splits a log into blocks (a heading, a bullet with its continuation lines, a paragraph) and
//!   blocks into sentences, each with its line numbers, so that every use can be cited.
//! - [`finished_tasks`]: which open tasks later lines report as done, and when a task is due.
//! - [`labels`]: labels and titles, such as `Decision: …`.
//! - [`named_thing`]: what a text says was stopped or made, and what a task is to make.
//! - [`opening_time`]: the time of day with which an entry begins.
//! - [`replacement`]: whether a line says that what an older one plans was given up, exchanged, moved, or
//!   taken back.
//! - [`word_list`]: the words of a text, and the cue phrases among them.
//! - [`terms`]: the content words of a statement, to compare statements.
//! - [`titles`]: shortens a statement to a title.
//! - [`self_contained`]: whether a statement is understandable by itself.
//!
//! All of it is pure; `memories` and `wisdom` call it, and a search calls [`replacement`].

pub(super) mod blocks;
pub(super) mod finished_tasks;
pub(super) mod labels;
pub(super) mod named_thing;
pub(super) mod opening_time;
pub(crate) mod replacement;
pub(super) mod self_contained;
pub(super) mod terms;
pub(super) mod titles;
pub(super) mod word_list;
