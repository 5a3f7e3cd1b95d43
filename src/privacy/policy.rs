//! What may be shown of the logs of a root: the configuration, and the decisions of people.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    neutralize::neutralize,
    origin::{LogOrigins, OriginRules},
    quarantine::{self, Concern},
    reclaimable::Reclaimable,
    secrets::{SecretMatch, SecretRules, rules::SecretRuleError, split_secrets::is_hidden},
};
use crate::{
    config::{
        SecretRulesFile,
        settings::{Personal, Privacy},
    },
    memory::{
        address::Stem,
        authorship::OriginReason,
        decision::{Decisions, Verdict},
        hash::ContentHash,
        item::Item,
        line_markup::without_ranges,
        log::{DailyLog, TextOrigin},
        markdown::LineKind,
        period::Period,
    },
    parallel,
};

/// How many logs are cached: a run sanitizes a log several times, and scanning it for secrets costs
/// more than all the rest.
const CACHED_LOGS_MAX: usize = 20_000;

/// The configured privacy settings, shared by roots with the same configuration.
#[derive(Debug)]
pub struct PrivacyPolicy {
    /// The user's rules with the built-in ones; `None` if the user has none.
    user_secrets: Option<SecretRules>,
    personal: Personal,
    origins: OriginRules,
    /// The hash of the settings and the user's rules.
    hash: ContentHash,
    findings_cache: Reclaimable<FindingsCache>,
}

/// The findings in logs, by the hash of their bytes.
type FindingsCache = Mutex<HashMap<(Stem, ContentHash), Arc<LogFindings>>>;

/// The user's secret rules are invalid. Nothing is done without them, because secrets that they would
/// mask would be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub struct PrivacyPolicyError {
    /// The file of the rules.
    pub file: PathBuf,
    /// The error.
    #[source]
    pub source: SecretRuleError,
}

/// Returns the text by which decisions identify a quarantined line.
///
/// For a summary it excludes citations, which change when log lines are relocated.
pub fn decision_text<'a>(stem: &Stem, line: &'a str) -> Cow<'a, str> {
    if stem.is_summary() { Item::parse(line.trim_end()).text.into() } else { line.into() }
}

/// The privacy rules of a root: its policy and its decisions. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct PrivacyRules {
    policy: Arc<PrivacyPolicy>,
    /// `None` if there are no decisions, so that most roots hash nothing.
    decisions: Option<Arc<Decisions>>,
}

/// The findings in a log, before any decisions.
#[derive(Debug, Default)]
pub(super) struct LogFindings {
    /// By line number; only lines with findings.
    lines: BTreeMap<u32, LineFindings>,
    /// The origin of each line of the body.
    pub(super) origins: LogOrigins,
}

/// The findings in a line.
#[derive(Debug, Default)]
pub(super) struct LineFindings {
    /// The parts of the line to mask, in order.
    pub(super) secrets: Vec<SecretPart>,
    /// The reasons to quarantine it.
    pub(super) concerns: Vec<Concern>,
    /// The parts of the line that are not its writer's own words, in order.
    pub(super) excluded: Vec<Range<usize>>,
}

impl LineFindings {
    /// Returns the excluded parts of the words that begin at a byte.
    pub(super) fn excluded_from(&self, words_at: Option<usize>) -> &[Range<usize>] {
        let before = self.excluded.partition_point(|it| it.start < words_at.unwrap_or(0));
        &self.excluded[before..]
    }
}

/// The text of a line by its origin.
#[derive(Debug)]
pub struct LineText<'l> {
    /// The number of the line in its file, from 1.
    pub number: u32,
    /// The text, secrets included.
    pub text: Cow<'l, str>,
    /// Who wrote it.
    pub origin: TextOrigin,
}

/// The part of a secret in one line.
#[derive(Debug)]
pub(super) struct SecretPart {
    /// Bytes of the line.
    pub(super) range: Range<usize>,
    /// The secret; `None` if it starts in a line above.
    pub(super) secret: Option<SecretMatch>,
}

impl Default for PrivacyPolicy {
    fn default() -> Self {
        Self {
            user_secrets: None,
            personal: Personal::default(),
            origins: OriginRules::default(),
            hash: hash_of(&Privacy::default(), None),
            findings_cache: Reclaimable::new(FindingsCache::default),
        }
    }
}

/// Raised whenever a sanitized view of the same log differs from that of the version before.
const VIEW_VERSION: u32 = 2;

/// Returns the hash of a policy. It includes the program's version, because built-in rules may differ.
fn hash_of(privacy: &Privacy, own: Option<&SecretRulesFile>) -> ContentHash {
    let own = own.map_or("", |it| &it.text);
    let version = env!("CARGO_PKG_VERSION");
    ContentHash::of(format!("{version} {VIEW_VERSION} {privacy:?} {own}"))
}

/// Whether this process has scanned a log before.
static IS_READY: AtomicBool = AtomicBool::new(false);

impl PrivacyPolicy {
    /// Returns the policy of the given settings and the user's own secret rules.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the user's rules.
    pub fn new(
        privacy: &Privacy,
        own: Option<&SecretRulesFile>,
    ) -> Result<Self, PrivacyPolicyError> {
        let compile = |SecretRulesFile { path, text }: &SecretRulesFile| {
            SecretRules::with_user(text)
                .map_err(|source| PrivacyPolicyError { file: path.clone(), source })
        };
        Ok(Self {
            user_secrets: own.map(compile).transpose()?,
            personal: privacy.personal,
            origins: OriginRules::new(privacy),
            hash: hash_of(privacy, own),
            findings_cache: Reclaimable::new(FindingsCache::default),
        })
    }

    /// Returns the secret rules. The built-in ones are compiled on first use, which takes as long as a
    /// search and may not be needed.
    fn secrets(&self) -> &SecretRules {
        self.user_secrets.as_ref().unwrap_or_else(|| SecretRules::built_in())
    }

    /// Returns whether a secret is masked; personal data may be exempt.
    pub(super) fn masks(&self, found: &SecretMatch) -> bool {
        !found.is_personal || self.personal == Personal::Remove
    }

    /// Returns the findings in a log, from the cache or by scanning it.
    pub(super) fn findings_of(
        &self,
        log: &DailyLog,
        lines: &[(u32, &str, LineKind)],
    ) -> Arc<LogFindings> {
        let key = (log.stem.clone(), log.hash);
        // A panic in another thread leaves the cache valid.
        let cache = self.findings_cache.get();
        let locked = || cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = locked().get(&key) {
            return Arc::clone(found);
        }
        let found = Arc::new(self.find(log, lines));
        let mut cached = locked();
        if cached.len() >= CACHED_LOGS_MAX {
            cached.clear();
        }
        cached.insert(key, Arc::clone(&found));
        found
    }

    fn find(&self, log: &DailyLog, lines: &[(u32, &str, LineKind)]) -> LogFindings {
        let text: &str = log.raw();
        let origins = self.origins.of_lines(log, lines);
        let mut findings = LogFindings { lines: BTreeMap::new(), origins };
        for (at, markup) in &findings.origins.markup {
            // What only an image shows is not left out, but has another author.
            if !markup.is_image() && !markup.excluded.is_empty() {
                let line = findings.lines.entry(lines[*at].0).or_default();
                line.excluded.clone_from(&markup.excluded);
            }
        }
        let block: Vec<(&str, TextOrigin)> = lines
            .iter()
            .zip(&findings.origins.lines)
            .map(|((_, line, _), it)| (*line, it.origin))
            .collect();
        let (concerns, secrets) =
            (|| quarantine::concerns_of_block(&block), || self.secrets().find(text));
        // On first use both have much to compile.
        let (secrets, concerns) = if IS_READY.swap(true, Ordering::Relaxed) {
            (secrets(), concerns())
        } else {
            parallel::join(secrets, concerns)
        };
        for (at, concern) in concerns {
            // The turns and notices of a host program look like what they are. Nothing is derived from them.
            let reason = findings.origins.lines[at].reason;
            let is_recognized = reason.is_some_and(OriginReason::is_machinery);
            if concern == Concern::Imitation && is_recognized {
                continue;
            }
            findings.lines.entry(lines[at].0).or_default().concerns.push(concern);
        }
        let mut found = secrets.into_iter().filter(|it| self.masks(it));
        let mut next = found.next();
        for &(number, line, _) in lines {
            let from = line.as_ptr() as usize - text.as_ptr() as usize;
            let to = from + line.len();
            while let Some(secret) = &next {
                if secret.range.start >= to {
                    break;
                }
                let start = secret.range.start.max(from);
                let end = secret.range.end.min(to);
                if start < end {
                    let starts_here = secret.range.start >= from;
                    let range = start - from..end - from;
                    let part = SecretPart { range, secret: starts_here.then(|| secret.clone()) };
                    findings.lines.entry(number).or_default().secrets.push(part);
                }
                if secret.range.end > to {
                    break;
                }
                next = found.next();
            }
        }
        findings
    }
}

impl LogFindings {
    /// Returns the findings in a line.
    pub(super) fn line(&self, number: u32) -> Option<&LineFindings> {
        self.lines.get(&number)
    }
}

impl PrivacyRules {
    /// Returns the rules of a root from its policy and the decisions of its people.
    pub fn new(policy: Arc<PrivacyPolicy>, decisions: &Decisions) -> Self {
        let decisions = decisions.has_key().then(|| Arc::new(decisions.clone()));
        Self { policy, decisions }
    }

    pub(super) fn policy(&self) -> &PrivacyPolicy {
        &self.policy
    }

    pub(super) fn is_forgotten(&self, stem: &Stem, line: &str) -> bool {
        self.decisions.as_ref().is_some_and(|it| it.is_forgotten(stem.as_str(), line))
    }

    /// Returns whether any line is forgotten, so that the checks of texts that are not read from a log are
    /// needed.
    pub fn has_forgotten(&self) -> bool {
        self.decisions.as_ref().is_some_and(|it| it.has_forgotten())
    }

    /// Returns whether the words of a line are forgotten in every log.
    pub fn is_forgotten_everywhere(&self, line: &str) -> bool {
        !line.trim().is_empty()
            && self.decisions.as_ref().is_some_and(|it| it.is_forgotten("", line))
    }

    /// Returns a text with blanks instead of forgotten lines, so that the numbers of lines stay the same.
    pub fn without_forgotten<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.has_forgotten() || !text.lines().any(|it| self.is_forgotten_everywhere(it)) {
            return text.into();
        }
        let left = |line: &'a str| {
            let words = line.trim_end_matches(['\r', '\n']);
            if self.is_forgotten_everywhere(words) { &line[words.len()..] } else { line }
        };
        text.split_inclusive('\n').map(left).collect::<String>().into()
    }

    /// Returns the hash of the policy. Text derived from the sanitized view is valid only for the same
    /// hash.
    pub fn policy_hash(&self) -> ContentHash {
        self.policy.hash
    }

    /// Returns a person's verdict on a quarantined line.
    pub fn review_verdict(&self, stem: &Stem, line: &str) -> Option<Verdict> {
        self.decisions.as_ref()?.review_verdict(stem.as_str(), &decision_text(stem, line))
    }

    /// Returns the lines of a log with the origin of each, without judging them. One that a person
    /// accepted counts as written by that person. One that is external only for its quotations is there a second
    /// time, without them.
    pub fn line_origins<'l>(&self, log: &'l DailyLog) -> Vec<LineText<'l>> {
        let lines = log.lines();
        let found = self.policy.origins.of_lines(log, &lines);
        let mut origins = Vec::with_capacity(lines.len());
        for (at, (&(number, text, _), line)) in lines.iter().zip(&found.lines).enumerate() {
            let is_accepted = line.origin == TextOrigin::External
                && self.review_verdict(&log.stem, text) == Some(Verdict::Accepted);
            let origin = if is_accepted { TextOrigin::Human } else { line.origin };
            origins.push(LineText { number, text: text.into(), origin });
            if let Some((ranges, own)) = found.quoted_in(at).filter(|_| !is_accepted) {
                let text = without_ranges(text, &ranges).into();
                origins.push(LineText { number, text, origin: own });
            }
        }
        origins
    }

    /// Returns whether a text contains secrets, so that placeholders need the key of the root.
    ///
    /// The key is otherwise created with the first decision. Frontmatter counts, and so does the text
    /// without its hidden characters.
    pub fn needs_key(&self, text: &str) -> bool {
        let has_secrets = |text: &str| matches!(self.mask_secrets(text), Cow::Owned(_));
        let mut visible = String::with_capacity(text.len());
        let mut copied = 0;
        for (at, c, _) in quarantine::characters::suspicious_characters(text) {
            visible.push_str(&text[copied..at]);
            copied = at + c.len_utf8();
        }
        visible.push_str(&text[copied..]);
        has_secrets(text) || (copied > 0 && has_secrets(&visible))
    }

    /// Returns the hash of a log as an input: see [`Decisions::input_hash`].
    pub fn input_hash(&self, stem: &Stem, bytes: ContentHash) -> ContentHash {
        self.decisions.as_ref().map_or(bytes, |it| it.input_hash(stem.as_str(), bytes))
    }

    /// Returns the hash of a summary as an input of the level above: of its body, and of the lines that
    /// people wrote into it and accepted.
    pub fn summary_input_hash(&self, period: Period, body_hash: &str) -> String {
        let decisions = self.decisions.as_ref();
        decisions.map_or(body_hash.to_owned(), |it| {
            it.summary_input_hash(&period.to_string(), body_hash)
        })
    }

    pub(super) fn secret_mark(&self, kind: &str, secret: &str) -> String {
        // The same secret has the same placeholder, with or without hidden characters.
        let secret = &secret.replace(is_hidden, "");
        match &self.decisions {
            Some(decisions) => decisions.secret_placeholder(kind, secret),
            None => Decisions::default().secret_placeholder(kind, secret),
        }
    }

    /// Returns the secrets and personal data in a text other than a log, masked or not.
    pub fn find_secrets(&self, text: &str) -> Vec<SecretMatch> {
        self.policy.secrets().find(text)
    }

    /// Returns whether a secret is masked; personal data may be exempt.
    pub fn masks(&self, found: &SecretMatch) -> bool {
        self.policy.masks(found)
    }

    /// Returns a text other than a log with placeholders instead of secrets.
    pub fn mask_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find_secrets(text);
        let mut masked = found.iter().filter(|it| self.policy.masks(it)).peekable();
        if masked.peek().is_none() {
            return text.into();
        }
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        for found in masked {
            shown.push_str(&text[at..found.range.start]);
            shown.push_str(&self.secret_mark(&found.kind, &text[found.range.clone()]));
            at = found.range.end;
        }
        shown.push_str(&text[at..]);
        shown.into()
    }

    /// Returns a message with placeholders instead of secrets, where no rules of a root are available:
    /// errors, log lines of the daemon, printed settings.
    pub fn mask_message(text: &str) -> String {
        static RULES: LazyLock<PrivacyRules> = LazyLock::new(PrivacyRules::default);
        RULES.mask_secrets(text).into_owned()
    }

    /// Returns a text for a generated file: first inert, then without secrets.
    ///
    /// Text composed of several parts should be passed as a whole.
    pub fn sanitize_output(&self, text: &str) -> String {
        self.mask_secrets(&neutralize(text)).into_owned()
    }

    /// Returns a name or a description for a generated list: as [`Self::sanitize_output`], or a
    /// placeholder if it looks like an attack.
    pub fn sanitize_label(&self, text: &str) -> String {
        self.label_of(text, TextOrigin::Agent)
    }

    /// Returns the name of an agent for output. It may come from the configuration of a cloned folder.
    pub fn sanitize_agent_name(&self, name: &str) -> String {
        self.label_of(name, TextOrigin::External)
    }

    fn label_of(&self, text: &str, origin: TextOrigin) -> String {
        if quarantine::concerns(text, origin).is_empty() {
            self.sanitize_output(text)
        } else {
            quarantine::PLACEHOLDER.to_owned()
        }
    }

    /// Like `PrivacyRules::sanitize_output`, for text that will follow a heading.
    pub fn sanitize_output_after(&self, heading: &str, words: &str) -> String {
        let words = self.sanitize_output(words);
        let heading = format!("{}: ", self.sanitize_output(heading));
        let whole = self.mask_secrets(&format!("{heading}{words}")).into_owned();
        whole.strip_prefix(&heading).map_or(words, str::to_owned)
    }

    /// Returns a text without secrets and their placeholders, for names derived from it.
    pub fn without_marks(&self, text: &str) -> String {
        Decisions::strip_secret_placeholders(&self.sanitize_output(text))
    }

    /// Returns the lines of a text other than a log with placeholders instead of secrets. For a secret
    /// of several lines, the first has the placeholder, and the others have nothing.
    pub fn mask_secret_lines(&self, text: &str) -> Vec<String> {
        let mut found = self.find_secrets(text);
        found.retain(|it| self.policy.masks(it));
        let mut next = 0;
        let mut lines = Vec::new();
        let mut from = 0;
        for line in text.split('\n') {
            let to = from + line.len();
            let mut shown = String::with_capacity(line.len());
            let mut at = from;
            while let Some(secret) = found.get(next).filter(|it| it.range.start < to) {
                let Range { start, end } = secret.range;
                shown.push_str(&text[at..start.max(at)]);
                if start >= from {
                    shown.push_str(&self.secret_mark(&secret.kind, &text[start..end]));
                }
                at = end.min(to);
                if end > to {
                    break; // It continues in the next line.
                }
                next += 1;
            }
            shown.push_str(&text[at..to]);
            lines.push(shown);
            from = to + 1;
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_anywhere_in_a_text_need_the_key() {
        // Made up, and split so that no scanner reports this file.
        let token = ["ghp_", "x7Kq2mVb9TzLr4Nw8YcPd3JfHs6GaEu1QoRi"].concat();
        let hidden = token.replace("x7Kq", "x7\u{200b}Kq");
        let rules = PrivacyRules::new(Arc::new(PrivacyPolicy::default()), &Decisions::default());
        for text in [
            format!("- Used {token} for the release\n"),
            format!("---\ntopic: {token}\n---\n\n- Released\n"),
            format!("- Used {hidden} for the release\n"),
        ] {
            assert!(rules.needs_key(&text), "{text}");
        }
        assert!(!rules.needs_key("---\ntopic: release\n---\n\n- Released\n"));
    }
}
