//! The times that a search question names.

pub(crate) mod date_words;
pub(crate) mod dates;
pub(crate) mod event;
pub(crate) mod expression;
pub(crate) mod relative;
