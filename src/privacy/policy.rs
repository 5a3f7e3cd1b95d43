//! What may be seen of the logs of a root: what the configuration says, and what people decided.

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
    origin::OriginRules,
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
        decision::{Decisions, Verdict},
        hash::ContentHash,
        item::Item,
        log::{DailyLog, TextOrigin},
        markdown::LineKind,
        period::Period,
    },
    parallel,
};

/// How many logs are remembered: a log is served several times on its way, and reading it for
/// secrets costs more than all the rest.
const CACHED_LOGS_MAX: usize = 20_000;

/// What the configuration says of what may be seen. One for all roots that are run alike.
#[derive(Debug)]
pub struct PrivacyPolicy {
    /// A person's own with the built-in ones; `None` where there are no own.
    user_secrets: Option<SecretRules>,
    personal: Personal,
    origins: OriginRules,
    /// Of all that it was made of.
    hash: ContentHash,
    findings_cache: Reclaimable<FindingsCache>,
}

/// What was found in logs with these bytes.
type FindingsCache = Mutex<HashMap<(Stem, ContentHash), Arc<LogFindings>>>;

/// A person's rules for secrets are wrong. Nothing is done without them: what they would have kept
/// out would be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", file.display())]
pub struct PrivacyPolicyError {
    /// The file that they stand in.
    pub file: PathBuf,
    /// What is wrong.
    #[source]
    pub source: SecretRuleError,
}

/// Returns the words by which decisions know a line that is held. In a weekly or monthly file what it
/// cites does not count: that follows the logs, and the words stay.
pub fn decision_text<'a>(stem: &Stem, line: &'a str) -> Cow<'a, str> {
    if stem.is_summary() { Item::parse(line.trim_end()).text.into() } else { line.into() }
}

/// What of the logs of a root may not be seen. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct PrivacyRules {
    policy: Arc<PrivacyPolicy>,
    /// Only where there is anything to ask of it, so that most roots hash nothing.
    decisions: Option<Arc<Decisions>>,
}

/// What was found in a log, whatever people decided of it.
#[derive(Debug, Default)]
pub(super) struct LogFindings {
    /// By the number of the line; only lines in which there is something.
    lines: BTreeMap<u32, LineFindings>,
    /// Whose words each line of the body is.
    pub(super) origins: Vec<TextOrigin>,
}

/// What was found in a line.
#[derive(Debug, Default)]
pub(super) struct LineFindings {
    /// The parts of the line that are taken out, in order.
    pub(super) secrets: Vec<SecretPart>,
    /// What speaks against showing it.
    pub(super) concerns: Vec<Concern>,
}

/// What of a secret stands in one line.
#[derive(Debug)]
pub(super) struct SecretPart {
    /// Bytes of the line.
    pub(super) range: Range<usize>,
    /// What stands in its place; nothing where the secret began in a line above.
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

/// Another memoird may have other rules of its own.
fn hash_of(privacy: &Privacy, own: Option<&SecretRulesFile>) -> ContentHash {
    let own = own.map_or("", |it| &it.text);
    ContentHash::of(format!("{} {privacy:?} {own}", env!("CARGO_PKG_VERSION")))
}

/// Whether a log was looked through in this process.
static IS_READY: AtomicBool = AtomicBool::new(false);

impl PrivacyPolicy {
    /// Takes what a root is run with, and a person's own rules for secrets.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the person's rules.
    pub fn new(
        privacy: &Privacy,
        own: Option<&SecretRulesFile>,
    ) -> Result<Self, PrivacyPolicyError> {
        let compile = |SecretRulesFile { path, text }: &SecretRulesFile| {
            SecretRules::with_user(text)
                .map_err(|source| PrivacyPolicyError { file: path.clone(), source })
        };
        let own_secrets = own.map(compile).transpose()?;
        let origins = OriginRules::new(privacy);
        let hash = hash_of(privacy, own);
        Ok(Self {
            user_secrets: own_secrets,
            personal: privacy.personal,
            origins,
            hash,
            findings_cache: Reclaimable::new(FindingsCache::default),
        })
    }

    /// Returns the rules for secrets. The built-in ones are made ready when they are first asked: that takes
    /// as long as a search, which may need none.
    fn secrets(&self) -> &SecretRules {
        self.user_secrets.as_ref().unwrap_or_else(|| SecretRules::built_in())
    }

    /// Returns whether what was found is taken out.
    pub(super) fn masks(&self, found: &SecretMatch) -> bool {
        !found.is_personal || self.personal == Personal::Remove
    }

    /// Looks through a log, or remembers what it found there.
    pub(super) fn findings_of(
        &self,
        log: &DailyLog,
        lines: &[(u32, &str, LineKind)],
    ) -> Arc<LogFindings> {
        let key = (log.stem.clone(), log.hash);
        // What another thread left behind by falling over is as good as before.
        let lent = self.findings_cache.get();
        let remembered = || lent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = remembered().get(&key) {
            return Arc::clone(found);
        }
        let found = Arc::new(self.find(log, lines));
        let mut remembered = remembered();
        if remembered.len() >= CACHED_LOGS_MAX {
            remembered.clear();
        }
        remembered.insert(key, Arc::clone(&found));
        found
    }

    fn find(&self, log: &DailyLog, lines: &[(u32, &str, LineKind)]) -> LogFindings {
        let text: &str = log.raw();
        let origins = self.origins.of_lines(log, lines);
        let mut findings = LogFindings { lines: BTreeMap::new(), origins };
        let block: Vec<(&str, TextOrigin)> = lines
            .iter()
            .zip(&findings.origins)
            .map(|((_, line, _), origin)| (*line, *origin))
            .collect();
        let (concerns, secrets) =
            (|| quarantine::concerns_of_block(&block), || self.secrets().find(text));
        // The first time both have much to make ready.
        let (secrets, concerns) = if IS_READY.swap(true, Ordering::Relaxed) {
            (secrets(), concerns())
        } else {
            parallel::join(secrets, concerns)
        };
        for (at, concern) in concerns {
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
                    let here = secret.range.start >= from;
                    let range = start - from..end - from;
                    let part = SecretPart { range, secret: here.then(|| secret.clone()) };
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
    /// Returns what was found in the line with that number.
    pub(super) fn line(&self, number: u32) -> Option<&LineFindings> {
        self.lines.get(&number)
    }
}

impl PrivacyRules {
    /// Takes the rules of a root: what it is run with, and what its people decided.
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

    /// Returns the hash of what a root is run with: whether what was made of the served view may still
    /// stand, as far as nobody decided anything.
    pub fn policy_hash(&self) -> ContentHash {
        self.policy.hash
    }

    /// Returns what a person said of a line that is held.
    pub fn review_verdict(&self, stem: &Stem, line: &str) -> Option<Verdict> {
        self.decisions.as_ref()?.review_verdict(stem.as_str(), &decision_text(stem, line))
    }

    /// Returns whether marks of a text need the key of the root, which is made with its first
    /// decision otherwise: also those of its frontmatter, and of what is seen of it without its hidden
    /// characters.
    pub fn needs_key(&self, text: &str) -> bool {
        let marks = |text: &str| matches!(self.mask_secrets(text), Cow::Owned(_));
        let mut bare = String::with_capacity(text.len());
        let mut copied = 0;
        for (at, c, _) in quarantine::characters::suspicious_characters(text) {
            bare.push_str(&text[copied..at]);
            copied = at + c.len_utf8();
        }
        bare.push_str(&text[copied..]);
        marks(text) || (copied > 0 && marks(&bare))
    }

    /// Returns the hash by which a log is an input: see [`Decisions::input_hash`].
    pub fn input_hash(&self, stem: &Stem, bytes: ContentHash) -> ContentHash {
        self.decisions.as_ref().map_or(bytes, |it| it.input_hash(stem.as_str(), bytes))
    }

    /// Returns the hash by which a weekly or monthly file is an input of what stands above it: that of
    /// its body, and of the lines of its own in it that people let be seen.
    pub fn summary_input_hash(&self, period: Period, body_hash: &str) -> String {
        let known = self.decisions.as_ref();
        known.map_or(body_hash.to_owned(), |it| {
            it.summary_input_hash(&period.to_string(), body_hash)
        })
    }

    pub(super) fn secret_mark(&self, kind: &str, secret: &str) -> String {
        // It is the same one with a hidden character in it.
        let secret = &secret.replace(is_hidden, "");
        match &self.decisions {
            Some(decisions) => decisions.secret_placeholder(kind, secret),
            None => Decisions::default().secret_placeholder(kind, secret),
        }
    }

    /// Returns what a text that is no log holds of secrets and personal data, whether or not it is
    /// taken out.
    pub fn find_secrets(&self, text: &str) -> Vec<SecretMatch> {
        self.policy.secrets().find(text)
    }

    /// Returns whether what was found is taken out of what is seen.
    pub fn masks(&self, found: &SecretMatch) -> bool {
        self.policy.masks(found)
    }

    /// Returns a text that is no log as it may be seen: secrets are replaced by marks.
    pub fn mask_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find_secrets(text);
        let mut taken = found.iter().filter(|it| self.policy.masks(it)).peekable();
        if taken.peek().is_none() {
            return text.into();
        }
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        for found in taken {
            shown.push_str(&text[at..found.range.start]);
            shown.push_str(&self.secret_mark(&found.kind, &text[found.range.clone()]));
            at = found.range.end;
        }
        shown.push_str(&text[at..]);
        shown.into()
    }

    /// Returns a message without secrets, for where no rules of a root are at hand: errors, lines of
    /// the daemon's log, settings as they are told.
    pub fn mask_message(text: &str) -> String {
        static RULES: LazyLock<PrivacyRules> = LazyLock::new(PrivacyRules::default);
        RULES.mask_secrets(text).into_owned()
    }

    /// Returns a text as it is written to a derived file: inert, and then without secrets. What was
    /// put together from several places is looked at as it stands in the end.
    pub fn sanitize_output(&self, text: &str) -> String {
        self.mask_secrets(&neutralize(text)).into_owned()
    }

    /// Like `PrivacyRules::sanitize_output`, for words that will be read behind a heading.
    pub fn sanitize_output_after(&self, heading: &str, words: &str) -> String {
        let words = self.sanitize_output(words);
        let heading = format!("{}: ", self.sanitize_output(heading));
        let whole = self.mask_secrets(&format!("{heading}{words}")).into_owned();
        whole.strip_prefix(&heading).map_or(words, str::to_owned)
    }

    /// Returns a text without secrets and their marks, for names that are made of it.
    pub fn without_marks(&self, text: &str) -> String {
        Decisions::strip_secret_placeholders(&self.sanitize_output(text))
    }

    /// Returns the lines of a text that is no log as they may be seen, one for each. Of a secret of
    /// several lines the first has the mark, the others nothing.
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
                    break; // it goes on in the next line
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
    fn a_mark_needs_the_key_wherever_its_secret_stands() {
        // Made up, and told apart from the file that holds this by the break.
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
