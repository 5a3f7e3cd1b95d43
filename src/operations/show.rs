//! Reads a file as it is shown, now or at an earlier time.

use super::{
    error::CommandResult,
    history::{HistoryReader, absent_version, before_history},
    workspace::{Invocation, MemoryRoot},
};
use crate::recall::{framing::FramedText, history};

/// Returns the path and the sanitized text of a file, now or at an earlier time; then also the time of
/// that version.
pub(crate) fn sanitized_at(
    call: &Invocation,
    root: &MemoryRoot,
    file: &str,
    as_of: Option<&str>,
) -> CommandResult<(String, FramedText, Option<String>)> {
    let Some(time) = as_of else {
        let (path, _) = root.resolve_file(&call.environment, file)?;
        let bytes = if let Some(found) = root.vault.read(&path)? {
            root.vault.read_text(&path)?;
            found.bytes
        } else {
            let text = root.open_period(call, &path)?;
            text.ok_or_else(|| root.no_file(call, &path, file))?.into_bytes()
        };
        let framed = root.sanitized_file(&path, &bytes);
        return Ok((path, framed, None));
    };
    let past = HistoryReader::open(call, root)?;
    let time = history::parse_time(time, root.settings.zone.name.0, call.now)?;
    let history = past.find(file)?;
    let version = history.at(time).ok_or_else(|| before_history(&past, &history))?;
    let bytes = past
        .version_bytes(&history, version)?
        .ok_or_else(|| absent_version(&past, &history, version))?;
    let framed = root.sanitized_file(&history.path, &bytes);
    Ok((history.path.clone(), framed, Some(past.rfc3339(version.at))))
}
