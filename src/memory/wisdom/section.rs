//! The sections of `WISDOM.md`.

/// A `## Section` of the file, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WisdomSection {
    /// Rules, boundaries first.
    HowToWork,
    /// Who the people are, and what they prefer.
    People,
    /// What was learned.
    Lessons,
    /// Decisions that bind.
    Decisions,
    /// The state of projects.
    Projects,
    /// Hosts, addresses, paths.
    Environment,
    /// Open items.
    Open,
    /// What was stopped, removed or cancelled.
    Stopped,
}

impl WisdomSection {
    /// All sections, in order.
    pub const ALL: [Self; 8] = [
        Self::HowToWork,
        Self::People,
        Self::Lessons,
        Self::Decisions,
        Self::Projects,
        Self::Environment,
        Self::Open,
        Self::Stopped,
    ];

    /// Returns its heading, without `##`.
    pub fn title(self) -> &'static str {
        match self {
            Self::HowToWork => "How to work",
            Self::People => "People",
            Self::Lessons => "Lessons",
            Self::Decisions => "Decisions",
            Self::Projects => "Projects",
            Self::Environment => "Environment",
            Self::Open => "Open",
            Self::Stopped => "Stopped",
        }
    }

    /// Returns its place among all sections, from 0.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the place of a heading among all sections; headings of people come first.
    pub(super) fn place_of(title: &str) -> Option<usize> {
        Self::ALL.iter().position(|it| it.title() == title)
    }

    /// Returns whether it says how things are, rather than how to act.
    pub fn is_state(self) -> bool {
        self >= Self::Projects
    }

    /// Returns whether its bullets end with the day of their source: what they say may change.
    pub fn is_dated(self) -> bool {
        self >= Self::Decisions
    }
}
