//! Keeps `WISDOM.md` in a block of a file that the agent keeps by itself (`wisdom_block` in `memoird.yaml`).
//!
//! The block is derived from `WISDOM.md` and that file alone, so writing it can be repeated at any time; the history
//! does not have it. Every write of `WISDOM.md` is followed by one of the block, and so is every run, which makes up
//! for what a crash or a conflict prevented.
//!
//! # What is never done
//!
//! - A file that changed since it was read is not replaced: the next run tries again. (The exchange of the two names
//!   is checked once more afterwards, see `store::fs::vault`.)
//! - A file without the block does not get it back: whoever removed it does not want it. Only `init` inserts it, or
//!   a run if there is no file at all.
//! - A block without an end, and one in which somebody wrote while the record of our own lines is lost, stay as they
//!   are.

use std::io;

use crate::{
    compaction::proposals,
    config::root::RootSettings,
    engine::extractive::SeenStatements,
    memory::{
        item::Item,
        wisdom_block::{self, BlockState, WithBlock},
    },
    privacy::PrivacyRules,
    recall::{
        context::{
            self, ContextBlock, ContextPart, ContextPartKind,
            blocks::{self, WisdomBlocks},
        },
        framing,
    },
    store::fs::{
        layout::{Layout, WISDOM_FILE},
        lock::WriteLock,
        vault::{Vault, VaultError},
    },
};

/// The longest file that `OpenClaw` loads whole at session start, in UTF-16 units (`agents.defaults.bootstrapMaxChars`).
pub(crate) const FILE_UNITS_MAX: usize = 20_000;

/// What became of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockOutcome {
    /// Nobody wants one.
    NotWanted,
    /// It is as it should be.
    Unchanged,
    /// It was written.
    Written,
    /// It was written, or is as it should be; not all of `WISDOM.md` fits.
    Shortened,
    /// It is gone: somebody removed it, or it was taken out.
    Removed,
    /// It has no end, there are two, or somebody wrote in it and the record of our lines is lost.
    Unclear,
}

/// What to do if there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfAbsent {
    /// It stays away.
    Leave,
    /// It is inserted.
    Insert,
}

/// Writes the block after `WISDOM.md` was written.
///
/// Returns [`VaultError::Changed`] if somebody wrote the file at the same time.
pub(crate) fn refresh(vault: &Vault, settings: &RootSettings) -> Result<(), VaultError> {
    let outcome = match settings.wisdom_block {
        Some(_) => write(vault, IfAbsent::Leave)?,
        None => BlockOutcome::NotWanted,
    };
    if matches!(outcome, BlockOutcome::NotWanted | BlockOutcome::Removed | BlockOutcome::Unclear) {
        // Of no use any more, and it may hold words that are forgotten by now.
        vault.remove_private(&vault.layout().wisdom_block_record())?;
    }
    tracing::debug!("the block of WISDOM.md: {outcome:?}");
    Ok(())
}

/// Writes the block into the file that the layout names.
///
/// Returns [`VaultError::Changed`] if somebody wrote the file at the same time, and an error if it is no regular file
/// in the root.
pub(crate) fn write(vault: &Vault, if_absent: IfAbsent) -> Result<BlockOutcome, VaultError> {
    let layout = vault.layout();
    let Some(path) = target(layout) else { return Ok(BlockOutcome::NotWanted) };
    let lock = acquire_lock(layout)?;
    let current = vault.read_note(path)?;
    let text = current.as_deref().unwrap_or_default();
    let state = wisdom_block::find(text);
    let strays = match &state {
        BlockState::Present(found) => match own_strays(vault, found)? {
            Some(strays) => strays,
            None => return Ok(BlockOutcome::Unclear),
        },
        BlockState::Broken => return Ok(BlockOutcome::Unclear),
        BlockState::Absent if current.is_some() && if_absent == IfAbsent::Leave => {
            return Ok(BlockOutcome::Removed);
        }
        BlockState::Absent => String::new(),
    };
    let frame = match &state {
        BlockState::Present(found) => found.frame_units(&strays),
        _ => wisdom_block::units(&wisdom_block::insert(text, "")),
    };
    let (body, is_whole) = compose(vault, FILE_UNITS_MAX.saturating_sub(frame))?;
    let new = match &state {
        BlockState::Present(found) => found.with_body(&body, &strays),
        _ => wisdom_block::insert(text, &body),
    };
    let outcome = |done| if is_whole { done } else { BlockOutcome::Shortened };
    if current.as_deref() == Some(&new) {
        return Ok(outcome(BlockOutcome::Unchanged));
    }
    // First, so that lines that somebody adds at once can be distinguished from ours.
    vault.write_private(&layout.wisdom_block_record(), &body)?;
    vault.replace_note(&lock, path, current.as_deref(), Some(&new))?;
    Ok(outcome(BlockOutcome::Written))
}

/// Takes the block out of the file, and removes a file that has nothing else.
///
/// Returns [`BlockOutcome::Removed`], [`BlockOutcome::NotWanted`] if there was none, [`BlockOutcome::Unclear`] if where
/// it ends cannot be known and the file stays as it is, and an error like [`write`].
pub(crate) fn remove(vault: &Vault) -> Result<BlockOutcome, VaultError> {
    let layout = vault.layout();
    let Some(path) = target(layout) else { return Ok(BlockOutcome::NotWanted) };
    let lock = acquire_lock(layout)?;
    let Some(text) = vault.read_note(path)? else { return Ok(BlockOutcome::NotWanted) };
    let found = match wisdom_block::find(&text) {
        BlockState::Present(found) => found,
        BlockState::Broken => return Ok(BlockOutcome::Unclear),
        BlockState::Absent => return Ok(BlockOutcome::NotWanted),
    };
    // Without the record, all that somebody may have written stays.
    let strays = own_strays(vault, &found)?.unwrap_or_else(|| found.strays(""));
    let new = found.without_block(&strays);
    vault.replace_note(&lock, path, Some(&text), (!new.is_empty()).then_some(&new))?;
    vault.remove_private(&layout.wisdom_block_record())?;
    Ok(BlockOutcome::Removed)
}

/// Returns what the file would be after [`write`] with [`IfAbsent::Insert`], and what it is.
pub(crate) fn preview(vault: &Vault) -> Result<(Option<String>, String), VaultError> {
    let Some(path) = target(vault.layout()) else { return Ok((None, String::new())) };
    let current = vault.read_note(path)?;
    let text = current.clone().unwrap_or_default();
    let new = match wisdom_block::find(&text) {
        BlockState::Absent => {
            let frame = wisdom_block::units(&wisdom_block::insert(&text, ""));
            let (body, _) = compose(vault, FILE_UNITS_MAX.saturating_sub(frame))?;
            wisdom_block::insert(&text, &body)
        }
        _ => text,
    };
    Ok((current, new))
}

/// Returns the path of the file, if it may hold the block.
fn target(layout: &Layout) -> Option<&str> {
    layout.wisdom_block().filter(|it| layout.curated_refusal(it).is_none())
}

fn acquire_lock(layout: &Layout) -> Result<WriteLock, VaultError> {
    WriteLock::acquire(layout.root()).map_err(|error| VaultError::Io {
        action: "write",
        path: layout.root().to_owned(),
        source: io::Error::other(error),
    })
}

/// Returns the lines in the block that are not ours; `None` if that cannot be known.
fn own_strays(vault: &Vault, found: &WithBlock<'_>) -> Result<Option<String>, VaultError> {
    if found.is_ours() {
        return Ok(Some(String::new()));
    }
    let written = vault.read_text(&vault.layout().wisdom_block_record())?;
    Ok(written.map(|it| found.strays(&it)))
}

/// Returns the lines of the block, at most `units_max` UTF-16 units, and whether they are all of `WISDOM.md`.
fn compose(vault: &Vault, units_max: usize) -> Result<(String, bool), VaultError> {
    let rules = vault.rules();
    let text = vault.read(&vault.layout().wisdom())?.filter(|it| !it.has_merge_conflict());
    let Some(text) = text.and_then(|it| String::from_utf8(it.bytes).ok()) else {
        return Ok((String::new(), true));
    };
    let is_accepted = |it: &Item| proposals::is_accepted(it, vault, &rules);
    let shown = framing::frame_generated(None, &text, &rules, &is_accepted).text;
    let found = blocks::wisdom_blocks(&shown, "", &notes(vault, &rules)?);
    let part = part(found);
    let all = wisdom_block::neutralized(&context::cut_to_fit(&part, usize::MAX));
    let mut body = all.clone();
    let mut room = units_max;
    // Characters outside of the basic plane count twice.
    while wisdom_block::units(&body) > units_max {
        body = wisdom_block::neutralized(&context::cut_to_fit(&part, room));
        let over = wisdom_block::units(&body).saturating_sub(units_max);
        if body.is_empty() || over == 0 {
            break;
        }
        room = room.saturating_sub(over);
    }
    let is_whole = body == all;
    Ok((body, is_whole))
}

/// Returns what the curated files say.
fn notes(vault: &Vault, rules: &PrivacyRules) -> Result<SeenStatements, VaultError> {
    let mut notes = Vec::new();
    for path in vault.layout().curated() {
        match vault.read_curated(path) {
            Err(error) if error.is_read_failure() => return Err(error),
            // The scan reports it.
            Err(_) | Ok(None) => {}
            Ok(Some(file)) => notes.extend(file.sanitized(rules)),
        }
    }
    Ok(SeenStatements::of_notes(&notes))
}

/// Returns the entries as a part of a context; open items come last, as in the file.
fn part(found: WisdomBlocks) -> ContextPart {
    let WisdomBlocks { lasting: mut blocks, open, .. } = found;
    let next = blocks.iter().map(|it| it.rank + 1).max().unwrap_or(0);
    blocks.extend((next..).zip(open).map(|(rank, it)| {
        let heading = Some("## Open".to_owned());
        ContextBlock { heading, text: format!("- {}", it.text), rank }
    }));
    ContextPart {
        kind: ContextPartKind::Wisdom,
        head: String::new(),
        blocks,
        left_out: 0,
        command: format!("memoird show {WISDOM_FILE}"),
    }
}
