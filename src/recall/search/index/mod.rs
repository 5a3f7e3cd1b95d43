//! What the search index holds, and how it is kept up to date with the files.

pub(crate) mod indexed_file;
pub(crate) mod items;
pub(crate) mod matches;
pub(crate) mod source;
pub(crate) mod target;
