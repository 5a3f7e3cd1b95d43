//! What a heading or label says about the blocks below it.

use std::{cell::OnceCell, collections::HashMap, sync::LazyLock};

use crate::{
    engine::extractive::statements::{
        blocks::{LogBlock, enclosing_blocks},
        labels::{normalized_title, split_label},
    },
    text::lexicon::CUES,
};

/// What a heading or label says about the blocks below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockRole {
    Feedback,
    /// Explicit guidance.
    Lesson,
    Decision,
    Preference,
    Reason,
    Task,
}

/// The roles of the titled blocks of a log, computed once per block.
pub(crate) struct BlockRoles<'a> {
    pub(super) blocks: &'a [LogBlock],
    pub(super) roles: Vec<OnceCell<Option<BlockRole>>>,
}

impl<'a> BlockRoles<'a> {
    pub(crate) fn of(blocks: &'a [LogBlock]) -> Self {
        Self { blocks, roles: vec![OnceCell::new(); blocks.len()] }
    }

    /// Returns the role of the nearest titled block above a block.
    pub(crate) fn role_above(&self, at: usize) -> Option<BlockRole> {
        enclosing_blocks(self.blocks, at).find_map(|above| {
            *self.roles[above].get_or_init(|| {
                let text = self.blocks[above].text.trim_end_matches(':');
                role_of_label(split_label(text).map_or(text, |(label, _)| label))
            })
        })
    }
}

pub(crate) fn role_of_label(label: &str) -> Option<BlockRole> {
    pub(super) static ROLES: LazyLock<HashMap<&str, BlockRole>> = LazyLock::new(|| {
        let tables = [
            (BlockRole::Task, &CUES.task_titles),
            (BlockRole::Reason, &CUES.how_to_apply_titles),
            (BlockRole::Reason, &CUES.reason_titles),
            (BlockRole::Preference, &CUES.preference_titles),
            (BlockRole::Decision, &CUES.decision_titles),
            (BlockRole::Lesson, &CUES.lesson_titles),
            (BlockRole::Feedback, &CUES.feedback_titles),
        ];
        // For a title in two tables the later one wins.
        tables.iter().flat_map(|(role, titles)| titles.iter().map(|it| (*it, *role))).collect()
    });
    let title = normalized_title(label);
    if let Some(role) = ROLES.get(title.as_str()) {
        return Some(*role);
    }
    // `Correction from Ines` counts as `Correction`.
    let short = CUES
        .name_prepositions
        .iter()
        .filter_map(|word| title.find(word))
        .min()
        .map(|at| &title[..at]);
    let short = short.unwrap_or(&title);
    if let Some(role) = ROLES.get(short) {
        return Some(*role);
    }
    let (words, last) = (short.split(' ').count(), short.rsplit(' ').next()?);
    match last {
        "feedback" if words <= 3 => Some(BlockRole::Feedback),
        _ if words <= 3 && CUES.lesson_nouns.contains(&last) => Some(BlockRole::Lesson),
        _ => None,
    }
}
