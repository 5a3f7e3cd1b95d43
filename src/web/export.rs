//! Writes the pages of a folder as files that need no program.
//!
//! It begins with the first page and writes each page that one before it links to, so that no link is broken.

use std::{
    collections::{BTreeSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    address::PageAddress,
    assets,
    context::{Fields, FolderChoice, LinkStyle, PageContext},
    layout, pages,
};
use crate::operations::{
    error::{CommandError, CommandResult},
    workspace::ConfigOverrides,
};

/// The pages that an export begins with; others are linked from them.
const FIRST: [PageAddress; 6] = [
    PageAddress::Today,
    PageAddress::Timeline(None),
    PageAddress::Topics,
    PageAddress::Runs,
    PageAddress::Cost,
    PageAddress::Sessions,
];

/// Writes the pages of a folder into a new or empty one, and returns how many.
pub(super) fn export(overrides: &ConfigOverrides, root: &Path, dir: &Path) -> CommandResult<usize> {
    let folder = FolderChoice { paths: Arc::new([root.to_owned()]), index: 0 };
    let context = PageContext::open(overrides, folder, LinkStyle::Files, None, Arc::default())?;
    let target = target_folder(dir)?;
    // What fails in between leaves no half of an export.
    let draft = DraftFolder::create(&target)?;
    let written = write_pages(&context, &draft.0)?;
    fs::rename(&draft.0, &target).map_err(|error| cannot_write(&target, &error))?;
    Ok(written)
}

fn write_pages(context: &PageContext, dir: &Path) -> CommandResult<usize> {
    for name in ["style.css", "icon.svg"] {
        if let Some((_, content)) = assets::find(name) {
            write_file(dir, name, content)?;
        }
    }
    let mut seen: BTreeSet<PageAddress> = FIRST.into_iter().collect();
    let mut queue: VecDeque<PageAddress> = FIRST.into_iter().collect();
    let mut written = 0;
    while let Some(address) = queue.pop_front() {
        let Some((name, _)) = address.file_name() else { continue };
        // A page that cannot be made says why in its place, so that links to it still work.
        let shown = pages::render(context, &address, &Fields::default())
            .unwrap_or_else(|error| layout::error_content(&error));
        write_file(dir, &name, &layout::page(context, &address, &shown).into_string())?;
        written += 1;
        for linked in context.take_linked() {
            if seen.insert(linked.clone()) {
                queue.push_back(linked);
            }
        }
    }
    Ok(written)
}

/// A folder beside the wanted one that only this user can read. Removed unless it was renamed.
struct DraftFolder(PathBuf);

impl DraftFolder {
    fn create(target: &Path) -> CommandResult<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let Some(name) = target.file_name() else {
            let what = format!("`{}` is no name of a folder", target.display());
            return Err(CommandError::usage(what).hint("name a folder that does not exist"));
        };
        let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
        let path = target.with_file_name(name);
        let created = fs::DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|error| cannot_write(target, &error))?;
        Ok(Self(path))
    }
}

impl Drop for DraftFolder {
    fn drop(&mut self) {
        // After the folder was renamed, there is nothing to remove.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns where the export goes: a folder that does not exist, or an empty one, which is replaced.
fn target_folder(dir: &Path) -> CommandResult<PathBuf> {
    let dir = match dir.canonicalize() {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(dir.to_owned()),
        Err(error) => return Err(cannot_write(dir, &error)),
    };
    let mut entries = fs::read_dir(&dir).map_err(|error| cannot_write(&dir, &error))?;
    if entries.next().is_none() {
        return Ok(dir);
    }
    let what = format!("`{}` is not empty", dir.display());
    Err(CommandError::usage(what).hint("name a folder that does not exist"))
}

fn write_file(dir: &Path, name: &str, content: &str) -> CommandResult<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let path = dir.join(name);
    let mut options = fs::OpenOptions::new();
    // No link that somebody else put there is followed.
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(&path).and_then(|mut it| it.write_all(content.as_bytes()));
    written.map_err(|error| cannot_write(&path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> CommandError {
    let what = format!("cannot write `{}`: {error}", path.display());
    let hint = match path.parent() {
        Some(parent) if error.kind() == io::ErrorKind::NotFound => {
            format!("mkdir -p {}", parent.display())
        }
        _ => "name another folder".to_owned(),
    };
    CommandError::cannot_write(what).hint(hint)
}
