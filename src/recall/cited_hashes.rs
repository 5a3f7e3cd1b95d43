//! The short hashes by which a memory or an entry of `WISDOM.md` identifies its lines.

use std::{collections::BTreeMap, path::Path};

use crate::memory::{
    address::{Address, Citation},
    typed::TypedMemory,
    wisdom::WisdomFile,
};

/// Returns the hashes of the lines of a citation, where the file at `path` records them.
pub(super) fn cited_hashes(
    path: &str,
    text: &str,
    citation: &Citation,
) -> BTreeMap<Address, String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Ok(memory) = TypedMemory::parse(Path::new(name), text) {
        return memory.sources.into_iter().collect();
    }
    let file = WisdomFile::parse(text);
    let marks: Vec<_> = file.entries().filter_map(|it| it.meta.as_ref()).collect();
    let of_entry = marks.iter().filter(|it| it.sources == *citation);
    let all = marks.iter().filter(|_| marks.iter().all(|it| it.sources != *citation));
    // The hash of a line of a summary covers the citation at its end, which changes.
    let lines = of_entry.chain(all).flat_map(|it| it.lines.clone());
    lines.filter(|(at, _)| !at.stem.is_summary()).collect()
}
