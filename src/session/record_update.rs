//! Decides which record of a session a save changes, if there is one already. Pure.
//!
//! Logs cite lines of a record. So a record with an entry in a log is only amended: its frontmatter changes,
//! another summary may follow at its end, and the lines that can be cited keep their numbers. A record
//! without an entry is replaced under its name.

use super::{
    cited_summary,
    record::RecordHeader,
    save::{SaveRequest, StoredRecord},
    transcript::Transcript,
};
use crate::memory::frontmatter;

/// What a save does with the records of the session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecordTarget<'a> {
    /// It writes a new record.
    New,
    /// The record says the same.
    Unchanged(&'a StoredRecord),
    /// It replaces the record.
    Rewritten(&'a StoredRecord),
    /// It changes the frontmatter of the record, and adds another summary if `adds_summary`.
    Amended { record: &'a StoredRecord, header: Box<RecordHeader>, adds_summary: bool },
}

/// Returns what a save does with the records of its session. What the user set in a record earlier is kept
/// in `header`.
pub(super) fn find_target<'a>(
    records: &'a [StoredRecord],
    request: &SaveRequest<'_>,
    header: &mut RecordHeader,
) -> RecordTarget<'a> {
    if request.is_part {
        return RecordTarget::New;
    }
    let own: Vec<&StoredRecord> =
        records.iter().filter(|it| is_of_same_session(&it.header, header)).collect();
    let same = own.iter().rfind(|it| it.header.through == header.through);
    if let Some(same) = same.filter(|_| !header.is_logged) {
        let mut amended = same.header.clone();
        set_given(&mut amended, request, header);
        let adds_summary = amended.engine != same.header.engine;
        return if amended == same.header {
            RecordTarget::Unchanged(same)
        } else if adds_summary && !same.header.is_logged {
            *header = RecordHeader { started: header.started, ..amended };
            RecordTarget::Rewritten(same)
        } else {
            RecordTarget::Amended { record: same, header: Box::new(amended), adds_summary }
        };
    }
    // A summary by a model is not replaced by one without.
    let unlogged = own.iter().rfind(|it| {
        !it.header.is_logged
            && it.header.through.as_deref().is_some_and(|it| has_line(request.transcript, it))
            && (it.header.engine.is_none() || header.engine.is_some())
    });
    let Some(unlogged) = unlogged else {
        // The lines of a record with an entry stay, and so does what it covers in the logs.
        let grown = own.iter().rfind(|it| {
            let through = it.header.through.as_deref();
            it.header.is_logged && through.is_some_and(|it| has_line(request.transcript, it))
        });
        let Some(record) = grown.filter(|_| !header.is_logged) else { return RecordTarget::New };
        let mut amended = record.header.clone();
        set_given(&mut amended, request, header);
        return RecordTarget::Amended { record, header: Box::new(amended), adds_summary: true };
    };
    if request.tags.is_empty() {
        header.tags.clone_from(&unlogged.header.tags);
    }
    RecordTarget::Rewritten(unlogged)
}

/// Returns whether two records of the same style belong to one session: by its id, or without one by its
/// transcript.
fn is_of_same_session(record: &RecordHeader, other: &RecordHeader) -> bool {
    let is_same = match (&record.session, &other.session) {
        (None, None) => record.transcript.is_some() && record.transcript == other.transcript,
        (record, other) => record == other,
    };
    is_same && record.style == other.style && record.through.is_some()
}

fn has_line(transcript: &Transcript, id: &str) -> bool {
    transcript.entries.iter().any(|it| it.id == id)
}

/// Sets in a header what the user or a model gave now.
fn set_given(header: &mut RecordHeader, request: &SaveRequest<'_>, given: &RecordHeader) {
    if !request.tags.is_empty() {
        header.tags.clone_from(&given.tags);
    }
    if request.description.is_some() {
        header.description.clone_from(&given.description);
    }
    if request.sections.is_some() {
        header.engine.clone_from(&given.engine);
    }
}

/// Returns the text of a record with another header, and the number of its lines. Blank lines above the
/// entries make room for a longer header, so that the entries keep their lines; `None` if there are too few.
pub(super) fn amend(text: &str, header: &RecordHeader) -> Option<(String, u32)> {
    let body = frontmatter::split(text).body(text);
    let front_before = text.lines().count() - body.lines().count();
    let front = header.print();
    let mut lines: Vec<&str> = body.lines().collect();
    let front_after = front.lines().count();
    let missing = front_before.saturating_sub(front_after);
    lines.splice(0..0, std::iter::repeat_n("", missing));
    for _ in front_before..front_after {
        let above = lines.iter().take_while(|it| !cited_summary::is_entry_head(it));
        let blank = above.into_iter().position(|it| it.is_empty())?;
        lines.remove(blank);
    }
    let text = format!("{front}{}\n", lines.join("\n"));
    let count = text.lines().count();
    Some((text, u32::try_from(count).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amended_record_keeps_the_lines_of_its_entries() {
        let header = RecordHeader {
            id: "CMEM-20260402-101500".to_owned(),
            style: "full".to_owned(),
            tags: vec!["a".to_owned()],
            is_logged: true,
            ..RecordHeader::default()
        };
        let body = "\n## 1. Intent\n\n- x\n\n- user 2026-04-02 10:00, line 4:\n  x\n\n  y\n";
        let text = format!("{}{body}", header.print());
        let entry = |text: &str| text.lines().position(|it| it.starts_with("- user")).unwrap();
        let longer = RecordHeader { engine: Some("m".to_owned()), ..header.clone() };
        let more = RecordHeader { description: Some("d".to_owned()), ..longer.clone() };
        let shorter = RecordHeader { tags: Vec::new(), ..header.clone() };
        for header in [&header, &longer, &more, &shorter] {
            let (amended, count) = amend(&text, header).unwrap();
            assert_eq!(entry(&amended), entry(&text), "{amended}");
            assert_eq!(RecordHeader::parse(&amended).as_ref(), Some(header));
            assert_eq!(amended.lines().count(), count as usize);
            assert!(amended.contains("## 1. Intent") && amended.ends_with("  x\n\n  y\n"));
        }
        assert_eq!(amend(&text, &header).unwrap().0, text);
        let full =
            RecordHeader { project: Some("p".to_owned()), branch: Some("b".to_owned()), ..more };
        assert_eq!(amend(&text, &full), None, "there is no room for so much");
    }
}
