//! The extractive engine: deterministic, offline, made of the words of the logs.
//!
//! A fold reads its logs into statements ([`page`]), cuts them into sentences and clauses
//! ([`sentence`]), weighs what each holds ([`material`], [`words`], [`counts`]), chooses what adds most
//! for its length ([`select`]), and joins the chosen words into cited bullets in sections
//! ([`render`], [`sections`]). Words are cut and joined, never changed.
//!
//! # Invariants
//!
//! - The same input gives the same draft: no clock, no randomness, no order of a hash map.
//! - The body never passes [`Budget::limit_chars`](super::Budget), and passes `target_chars` only where
//!   a single statement does; lines marked `#keep` are not counted.
//! - Each item cites each line whose words it uses, headings too.
//! - No step is quadratic in the length of a period.

pub mod counts;
mod fold;
mod material;
mod page;
mod render;
mod sections;
mod select;
mod sentence;
mod words;

pub use fold::fold;
