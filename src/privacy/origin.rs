//! Whose words a line is.
//!
//! Quotes and code are from elsewhere, whoever pasted them, and so is what stands under a heading
//! that the configuration names. A line that ends in a citation of ours is what memoird itself once
//! served: it says nothing new, and must not count as a second voice for what it repeats. The rest
//! has the origin that the log's frontmatter names, else the one that the configuration gives it by
//! its name. Trust only falls on the way: nothing that is derived is trusted above its sources.

use crate::{
    config::settings::{LogOrigin, Privacy},
    memory::{
        address::{Citation, Stem},
        item::Item,
        log::{DailyLog, TextOrigin},
        markdown::LineKind,
    },
};

/// What the configuration says of the origin of logs.
#[derive(Clone, Debug, Default)]
pub(super) struct OriginRules {
    default: LogOrigin,
    human_logs: Vec<String>,
    external_logs: Vec<String>,
    /// In lower case.
    external_headings: Vec<String>,
}

impl OriginRules {
    pub(super) fn new(privacy: &Privacy) -> Self {
        Self {
            default: privacy.origin,
            human_logs: privacy.human_logs.clone(),
            external_logs: privacy.external_logs.clone(),
            external_headings: privacy
                .external_headings
                .iter()
                .map(|it| normalized_heading(it))
                .collect(),
        }
    }

    /// Returns whose words the text of a log is, outside of quotes and code.
    fn of_log(&self, log: &DailyLog) -> TextOrigin {
        let is_in = |names: &[String]| names.iter().any(|it| matches_glob(it, log.stem.as_str()));
        let by_name = || {
            if is_in(&self.external_logs) {
                return TextOrigin::External;
            }
            if is_in(&self.human_logs) {
                return TextOrigin::Human;
            }
            match self.default {
                LogOrigin::Human => TextOrigin::Human,
                LogOrigin::Agent => TextOrigin::Agent,
                LogOrigin::External => TextOrigin::External,
            }
        };
        let told = log.origin.unwrap_or_else(by_name);
        // A record of a session may have come from anywhere; nobody else's words are a person's.
        if log.stem.is_session() { told.min(TextOrigin::Agent) } else { told }
    }

    /// Returns whose words each of `lines` is.
    pub(super) fn of_lines(
        &self,
        log: &DailyLog,
        lines: &[(u32, &str, LineKind)],
    ) -> Vec<TextOrigin> {
        let own = self.of_log(log);
        let mut outside = None;
        let mut origins = Vec::with_capacity(lines.len());
        for &(_, text, kind) in lines {
            if let LineKind::Heading { level, .. } = kind {
                let words = text.get(kind.text_at(text)..).unwrap_or(text);
                if outside.is_none_or(|it| level <= it) {
                    let named = self.external_headings.contains(&normalized_heading(words));
                    outside = named.then_some(level);
                }
            }
            origins.push(match kind {
                LineKind::Quote { .. } | LineKind::Fence | LineKind::Code => TextOrigin::External,
                _ if outside.is_some() || is_echo(&log.stem, text) => TextOrigin::External,
                _ => own,
            });
        }
        origins
    }
}

/// Returns whether a line of a log was made by memoird: it ends in a citation of log lines. Weekly
/// and monthly files are made of such lines. What a session said ends in a citation of its record, which
/// nothing else is made of: it is said there for the first time.
fn is_echo(stem: &Stem, line: &str) -> bool {
    let cites_logs = |it: Citation| it.files().any(|(stem, _)| !stem.is_session());
    line.trim_end().ends_with(']')
        && !stem.is_summary()
        && Item::parse(line).citation.is_some_and(cites_logs)
}

/// Returns a heading as it compares: lower case, without marks around it.
fn normalized_heading(heading: &str) -> String {
    heading.trim().trim_matches(['#', ':', '*', '_', ' ']).to_lowercase()
}

/// Returns whether a name fits a pattern, in which `*` stands for any characters.
fn matches_glob(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use TextOrigin::{Agent, External, Human};

    #[track_caller]
    fn check(origins: &OriginRules, stem: &str, text: &str, expected: &[TextOrigin]) {
        let log = DailyLog::parse(stem.parse().unwrap(), text.as_bytes()).unwrap();
        assert_eq!(origins.of_lines(&log, &log.lines()), expected, "{stem}: {text}");
    }

    #[test]
    fn a_log_says_it_itself_or_is_known_by_its_name() {
        let origins = OriginRules::new(&Privacy {
            human_logs: vec!["*-notes".to_owned()],
            external_logs: vec!["*-mail*".to_owned()],
            ..Privacy::default()
        });
        check(&origins, "2026-04-02", "a", &[Agent]);
        check(&origins, "2026-04-02-notes", "a", &[Human]);
        check(&origins, "2026-04-02-mail-2", "a", &[External]);
        check(&origins, "2026-04-02-notes", "---\norigin: external\n---\na", &[External]);
        let human = Privacy { origin: LogOrigin::Human, ..Privacy::default() };
        check(&OriginRules::new(&human), "2026-04-02", "a\n> b", &[Human, External]);
    }

    #[test]
    fn what_stands_under_a_named_heading_came_from_elsewhere() {
        let external_headings = vec!["Tool output".to_owned()];
        let origins = OriginRules::new(&Privacy { external_headings, ..Privacy::default() });
        let text = "a\n## tool output:\nb\n### more\nc\n## Notes\nd\n# Tool Output\ne";
        let expected = [Agent, External, External, External, External, Agent, Agent, External];
        check(&origins, "2026-04-02", text, &[&expected[..], &[External]].concat());
    }

    #[test]
    fn what_memoird_served_is_no_second_voice() {
        let origins = OriginRules::default();
        check(&origins, "2026-04-02", "- We chose SQLite [2026-03-01:4]", &[External]);
        check(&origins, "2026-04-02", "- We chose SQLite [see below]", &[Agent]);
        check(&origins, "2026-04-02", "- We chose SQLite [CMEM-20260401-101500:7]", &[Agent]);
        let mixed = "- We chose SQLite [2026-03-01:4; CMEM-20260401-101500:7]";
        check(&origins, "2026-04-02", mixed, &[External]);
        check(&origins, "CMEM-20260401-101500", "---\norigin: human\n---\n- a", &[Agent]);
        check(&origins, "2026-W14", "- We chose SQLite [2026-03-01:4]", &[Agent]);
    }

    #[test]
    fn patterns_fit_whole_names() {
        let cases = [
            ("*", "a", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*-x*y", "1-x2y", true),
            ("*b*b", "ab", false),
            ("a", "ab", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches_glob(pattern, name), expected, "{pattern} {name}");
        }
    }
}
