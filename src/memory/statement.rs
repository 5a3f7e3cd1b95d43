//! Statements: the lines of a typed memory about a topic.
//!
//! Such a memory has a heading for each kind of statement, and below it one bullet a statement with its citation:
//!
//! ```text
//! ## Decisions
//!
//! - Keep the timetable in SQLite, because one file is easy to copy (2026-04-01) [2026-04-01:5]
//! ```
//!
//! A memory in a person's form has none of these headings, and no statement by this reading.

use std::collections::BTreeSet;

use super::{
    item::Item,
    markdown::{self, LineKind},
    typed::MemoryType,
};

/// What a statement says. The order of the variants is the order in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementKind {
    /// What to do or not to do, whenever a case occurs.
    Rule,
    /// What was learned.
    Lesson,
    /// What a person is, has or does.
    Profile,
    /// What a person wants.
    Preference,
    /// How a thing is.
    State,
    /// What was chosen, and perhaps why.
    Decision,
    /// A host, address, path, port or account.
    Environment,
    /// What is blocked or still to be done.
    Open,
    /// What was removed, disabled or cancelled.
    Retired,
}

impl StatementKind {
    /// Returns whether statements of this kind hold until something replaces them, however old they are.
    pub fn is_lasting(self) -> bool {
        matches!(
            self,
            Self::Rule | Self::Lesson | Self::Profile | Self::Preference | Self::Decision
        )
    }
}

/// A statement in a typed memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStatement {
    /// What it says.
    pub kind: StatementKind,
    /// Its line in the body, from 1.
    pub line: u32,
    /// Its words and citation.
    pub item: Item,
}

impl StatementKind {
    /// All kinds, in the order of the file.
    pub const ALL: [Self; 9] = [
        Self::Rule,
        Self::Lesson,
        Self::Profile,
        Self::Preference,
        Self::State,
        Self::Decision,
        Self::Environment,
        Self::Open,
        Self::Retired,
    ];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Lesson => "lesson",
            Self::Profile => "profile",
            Self::Preference => "preference",
            Self::State => "state",
            Self::Decision => "decision",
            Self::Environment => "environment",
            Self::Open => "open",
            Self::Retired => "retired",
        }
    }

    /// Returns its heading, without `##`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rule => "Rules",
            Self::Lesson => "Lessons",
            Self::Profile => "Profile",
            Self::Preference => "Preferences",
            Self::State => "State",
            Self::Decision => "Decisions",
            Self::Environment => "Environment",
            Self::Open => "Open",
            Self::Retired => "Stopped",
        }
    }

    /// Returns the kind with that heading.
    pub fn from_title(title: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.title() == title.trim())
    }

    /// Returns the kind of what a memory of one statement says.
    pub fn of_memory(kind: MemoryType) -> Self {
        match kind {
            MemoryType::User => Self::Profile,
            MemoryType::Feedback => Self::Rule,
            MemoryType::Project => Self::Decision,
            MemoryType::Reference => Self::Environment,
        }
    }

    /// Returns the type of the memories that hold statements of this kind.
    pub fn memory_type(self) -> MemoryType {
        match self {
            Self::Rule | Self::Lesson => MemoryType::Feedback,
            Self::Profile | Self::Preference => MemoryType::User,
            Self::State | Self::Decision | Self::Open | Self::Retired => MemoryType::Project,
            Self::Environment => MemoryType::Reference,
        }
    }
}

/// Returns the statements of a body, in order.
pub fn statements_of(body: &str) -> Vec<MemoryStatement> {
    let mut kind = None;
    let mut found = Vec::new();
    let inert = inert_lines(body);
    for (line, text) in (1_u32..).zip(body.lines()) {
        if inert.contains(&(line as usize - 1)) {
            continue;
        }
        if let Some(title) = text.strip_prefix("## ") {
            kind = StatementKind::from_title(title);
        } else if text.starts_with("# ") {
            kind = None;
        } else if let (Some(kind), Some(words)) = (kind, text.strip_prefix("- ")) {
            found.push(MemoryStatement { kind, line, item: Item::parse(words) });
        }
    }
    found
}

/// Returns the indexes of the lines in code fences and comments, those of their marks included.
pub fn inert_lines(body: &str) -> BTreeSet<usize> {
    let kinds = markdown::classify_summary_lines(body.lines());
    let is_inert =
        |it: LineKind| matches!(it, LineKind::Fence | LineKind::Code | LineKind::Comment);
    kinds.into_iter().enumerate().filter(|it| is_inert(it.1)).map(|it| it.0).collect()
}

/// Returns the body with these statements, which are sorted by kind.
pub fn body_of<'a>(statements: impl Iterator<Item = (StatementKind, &'a Item)>) -> String {
    let mut body = String::new();
    let mut last = None;
    for (kind, item) in statements {
        if last != Some(kind) {
            body.extend(["\n## ", kind.title(), "\n\n"]);
            last = Some(kind);
        }
        body.extend(["- ", &item.to_string(), "\n"]);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let item = |text: &str| Item::parse(text);
        let all = [
            (StatementKind::Rule, item("Never push without asking [2026-04-01:3]")),
            (StatementKind::Rule, item("Close each valve [2026-04-01:4-5]")),
            (StatementKind::Open, item("Renew the licence")),
        ];
        let body = body_of(all.iter().map(|(kind, item)| (*kind, item)));
        assert_eq!(
            body,
            "\n## Rules\n\n- Never push without asking [2026-04-01:3]\n- Close each valve [2026-04-01:4-5]\n\
             \n## Open\n\n- Renew the licence\n"
        );
        let read: Vec<_> =
            statements_of(&body).into_iter().map(|it| (it.kind, it.line, it.item)).collect();
        let lines = [4, 5, 9];
        let expected: Vec<_> =
            all.into_iter().zip(lines).map(|((kind, item), line)| (kind, line, item)).collect();
        assert_eq!(read, expected);
        assert_eq!(statements_of("\n# Rules\n- a\n## Other\n- b\n"), []);
        let fenced = "\n```\n## State\n- a\n```\n<!-- x\n## State\n- b\n-->\n";
        assert_eq!(statements_of(fenced), []);
    }
}
