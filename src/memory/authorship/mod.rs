//! Who wrote each line of a log: notes, turns of a saved transcript, or text of a program.
//!
//! Host programs of agents append more to a log than notes: transcripts with their own prompts and
//! envelopes, recalled memories, reports of maintenance. [`classify`] says for each line who speaks,
//! which form it has, and why it counts as external. A speaker is not an origin: a turn of the owner is
//! never trusted more than the file that contains it, since anybody could have written `user:` there.
//!
//! - `session_dump` finds saved transcripts and their turns;
//! - `host_span` finds what a host program encloses between two marks;
//! - `host_text` recognizes what a host program wrote in them, and in notes;
//! - `machine_report` recognizes reports among notes, and `pasted_mail` and `pasted_text` what was read;
//! - the phrases are in `config/lexicon/authorship.yaml`.

mod host_span;
mod host_text;
mod machine_report;
mod pasted_mail;
mod pasted_text;
pub(crate) mod session_dump;

use std::ops::Range;

pub use host_text::without_message_id;

use super::markdown::LineKind;

/// Who speaks in a line of a saved transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The person whom the agent serves.
    Owner,
    /// The agent.
    Assistant,
    /// The host program, or a tool.
    Machine,
}

impl Speaker {
    /// Returns the name used in output and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Assistant => "assistant",
            Self::Machine => "machine",
        }
    }
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LineShape {
    /// Nothing special: a note.
    #[default]
    Plain,
    /// The heading of a saved transcript, and the fields below it.
    SessionHeader,
    /// Ids, JSON about a message, an answer without words.
    Metadata,
    /// The line in which the words of a turn begin.
    TurnStart,
    /// A further line of a turn.
    Turn,
    /// Text of a host program.
    Notice,
    /// A line of a program's report.
    Report,
    /// Text pasted from elsewhere.
    Pasted,
}

impl LineShape {
    /// Returns the name used in output and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::SessionHeader => "session header",
            Self::Metadata => "metadata",
            Self::TurnStart => "turn start",
            Self::Turn => "turn",
            Self::Notice => "notice",
            Self::Report => "report",
            Self::Pasted => "pasted",
        }
    }

    /// Returns whether a line of this form says nothing, so that no engine reads it.
    pub fn is_metadata(self) -> bool {
        matches!(self, Self::SessionHeader | Self::Metadata)
    }
}

/// Declares the reasons for an external origin with their names.
macro_rules! origin_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a line counts as external.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OriginReason {
            $($(#[$doc])* $variant,)*
        }

        impl OriginReason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name used in output, JSON, and the word lists.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

origin_reasons! {
    /// The whole log is external.
    Log = "external log",
    /// It is under a heading that the configuration names.
    Heading = "external heading",
    /// It is a quote.
    Quote = "quote",
    /// It is code.
    Code = "code",
    /// It is the text of an image.
    Image = "image",
    /// It repeats a generated summary.
    Echo = "repeated summary",
    /// It is metadata of a transcript.
    Metadata = "metadata",
    /// A prompt or notice of the host program.
    HostPrompt = "host prompt",
    /// A heartbeat prompt, or an answer to one that reports nothing.
    Heartbeat = "heartbeat",
    /// The prompt of a scheduled task.
    ScheduledPrompt = "scheduled prompt",
    /// The host program reports the result of a command.
    CommandResult = "command result",
    /// The prompt before a compaction of the context.
    CompactionPrompt = "compaction prompt",
    /// A message between agents.
    SubagentNotice = "subagent notice",
    /// An event that the host program reports.
    SystemEvent = "system event",
    /// The host program reports an attachment.
    MediaNotice = "media notice",
    /// Messages that waited while the agent was busy.
    QueueNotice = "queue notice",
    /// Output of a tool.
    ToolOutput = "tool output",
    /// Memories that the host program recalled.
    RecalledMemories = "recalled memories",
    /// Earlier messages of a group.
    ChatHistory = "chat history",
    /// Text that the host program marked as untrusted.
    UntrustedSpan = "untrusted span",
    /// The report of a maintenance of memories while the agent was idle.
    DreamReport = "dream report",
    /// An article, a product's description, search results, documentation.
    PastedText = "pasted text",
}

impl OriginReason {
    /// Returns the reason with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// Returns whether the text itself shows it, not where it is or how it is marked.
    pub fn is_of_text(self) -> bool {
        !matches!(
            self,
            Self::Log | Self::Heading | Self::Quote | Self::Code | Self::Image | Self::Echo
        )
    }

    /// Returns whether the line was written by a program, not read or quoted by somebody.
    pub fn is_machinery(self) -> bool {
        self.is_of_text() && !matches!(self, Self::UntrustedSpan | Self::PastedText)
    }
}

/// Who wrote a line, in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineAuthorship {
    /// Who speaks, if it is part of a transcript.
    pub speaker: Option<Speaker>,
    /// The form.
    pub shape: LineShape,
    /// Why it is external whatever the origin of the log.
    pub reason: Option<OriginReason>,
    /// The transcript that it belongs to, an index of [`Authorship::sessions`].
    pub session: Option<u16>,
    /// Byte offset of the words if an envelope or a role precedes them, else 0.
    words_at: u32,
}

impl LineAuthorship {
    /// Returns the byte offset at which the speaker's words begin, after role and envelope; `None` if
    /// nothing precedes them.
    pub fn words_at(&self) -> Option<usize> {
        usize::try_from(self.words_at).ok().filter(|&it| it > 0)
    }

    /// Returns the same for a line of quoted text, in which a speaker is only claimed.
    pub fn as_quoted(self) -> Self {
        Self { speaker: None, words_at: 0, ..self }
    }

    /// Returns the same for a line of a file or section that somebody else wrote: its transcripts are
    /// no sessions of this agent.
    pub fn as_foreign(self) -> Self {
        let shape = if self.shape.is_metadata() { self.shape } else { LineShape::Plain };
        Self { shape, session: None, ..self.as_quoted() }
    }

    /// Marks a line of a host program.
    fn mark(&mut self, shape: LineShape, reason: OriginReason) {
        self.speaker = Some(Speaker::Machine);
        self.shape = shape;
        self.reason = Some(reason);
        self.words_at = 0;
    }
}

/// A transcript that a host program saved into a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpedSession {
    /// The id in its header.
    pub id: Option<Box<str>>,
}

/// Who wrote the lines of a log.
#[derive(Clone, Debug, Default)]
pub struct Authorship {
    /// One per line.
    pub lines: Vec<LineAuthorship>,
    /// The transcripts, in the order of the file.
    pub sessions: Vec<DumpedSession>,
}

/// A line of a log: number, text, and kind.
type NumberedLine<'a> = (u32, &'a str, LineKind);

/// Finds out who wrote each of `lines`, the lines of one log.
pub fn classify(lines: &[NumberedLine<'_>]) -> Authorship {
    let mut found =
        Authorship { lines: vec![LineAuthorship::default(); lines.len()], sessions: Vec::new() };
    let spans = host_text::mark_spans(lines, &mut found.lines);
    let dumps = session_dump::find(lines, &spans);
    let mut notes_at = 0;
    for dump in &dumps {
        mark_notes(lines, notes_at..dump.lines.start, &mut found.lines);
        session_dump::mark(lines, dump, &mut found);
        notes_at = dump.lines.end;
    }
    mark_notes(lines, notes_at..lines.len(), &mut found.lines);
    found
}

/// Returns for each line the byte at which text begins that a host program enclosed, if it has some.
pub fn host_span_starts(lines: &[(&str, LineKind)]) -> Vec<Option<usize>> {
    let mut starts = vec![None; lines.len()];
    for span in host_span::find(lines) {
        starts[span.lines.clone()].fill(Some(0));
        starts[span.lines.start] = Some(span.start);
    }
    starts
}

/// Marks what is no note among notes.
fn mark_notes(lines: &[NumberedLine<'_>], range: Range<usize>, found: &mut [LineAuthorship]) {
    host_text::mark_notes(lines, range.clone(), found);
    machine_report::mark(lines, range.clone(), found);
    pasted_mail::mark(lines, range.clone(), found);
    pasted_text::mark(lines, range, found);
}

#[cfg(test)]
mod tests;
