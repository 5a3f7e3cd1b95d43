//! Rules as data: read, checked, and made ready for one walk over a text.
//!
//! A rule names the literals that it starts from, so that its expression runs only where one of
//! them stands. There are two forms:
//!
//! - `prefixes` and `body`: a token that says by its first letters whose it is. The body is matched
//!   right behind the prefix and nowhere else.
//! - `keywords` and `regex`: a value that is known by the words before it. The expression runs over
//!   the line in which a keyword stands; without keywords, over the whole text.
//!
//! Expressions are those of the crate `regex`, which take linear time in whatever they are given.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{check::ValueCheck, scan};
use crate::privacy::reclaimable::Reclaimable;

/// The most text of rules that is read, in bytes.
const BYTES_MAX: usize = 256 * 1024;

/// The most rules: each keyword costs a little on each text.
const RULES_MAX: usize = 500;

/// The most memory of one compiled expression, in bytes: enough for any token, too little for
/// `(a{1000}){1000}`.
const REGEX_BYTES_MAX: usize = 2 * 1024 * 1024;

/// How far behind a prefix its body may reach, in bytes: a long JWT.
const TOKEN_BYTES_MAX: usize = 4 * 1024;

/// How far behind a prefix a body of several lines may reach, in bytes: a large RSA key with room.
const MULTILINE_TOKEN_BYTES_MAX: usize = 16 * 1024;

/// What parts an example of the built-in file, so that nobody takes it for a key that is in use.
#[cfg(test)]
const EXAMPLE_SEPARATOR: char = '¦';

/// What is wrong with rules for secrets.
#[derive(Debug, thiserror::Error)]
pub enum SecretRuleError {
    /// Longer than is read.
    #[error("the rules for secrets are longer than {} KiB; drop what is not needed", BYTES_MAX / 1024)]
    TooLong,
    /// More than are kept.
    #[error("there are over {RULES_MAX} rules for secrets; put alike ones into one expression")]
    TooMany,
    /// Not the YAML that is expected.
    #[error(
        "the rules for secrets cannot be read: {0}; expected `rules:`, `allow:` or `off:` with a list"
    )]
    Yaml(#[from] serde_yaml::Error),
    /// An id that cannot stand in a mark.
    #[error(
        "secret rule `{id}`: an id is made of a-z, 0-9 and single dashes, such as `acme-token`"
    )]
    Id {
        /// The id as written.
        id: String,
    },
    /// Two rules of one name in one file.
    #[error(
        "secret rule `{id}`: there are two of this id; rename one, or join their expressions with `|`"
    )]
    Duplicate {
        /// The id of both.
        id: String,
    },
    /// Neither of the two forms, or both.
    #[error("secret rule `{id}`: give `prefixes` and `body`, or `keywords` and `regex`")]
    Form {
        /// The rule.
        id: String,
    },
    /// A literal that would be found everywhere or nowhere.
    #[error("secret rule `{id}`: `{literal}` cannot be looked for; {hint}")]
    Literal {
        /// The rule.
        id: String,
        /// The keyword or prefix as written.
        literal: String,
        /// How to mend it.
        hint: &'static str,
    },
    /// An expression that does not compile.
    #[error(
        "secret rule `{id}`: its expression does not compile: {source}; look-around and back-references are not known, and repeats must be small"
    )]
    Regex {
        /// The rule.
        id: String,
        /// What the compiler says.
        source: Box<regex::Error>,
    },
    /// A group that the expression lacks.
    #[error("secret rule `{id}`: there is no group {group} in its expression; it has {groups}")]
    Group {
        /// The rule.
        id: String,
        /// The group asked for.
        group: usize,
        /// How many there are.
        groups: usize,
    },
    /// An example of a secret that the rule does not find.
    #[error(
        "secret rule `{id}`: it does not find its example {number} of a secret; mend the expression, or lower `entropy`"
    )]
    MissedExample {
        /// The rule.
        id: String,
        /// Which example, from 1. Its text may be a secret and is not shown.
        number: usize,
    },
    /// A clean example in which the rule finds something.
    #[error(
        "secret rule `{id}`: it finds something in its clean example {number}; make the expression narrower"
    )]
    FalsePositive {
        /// The rule.
        id: String,
        /// Which example, from 1.
        number: usize,
    },
    /// An entry of `allow` that does not compile.
    #[error(
        "entry {number} of `allow` does not compile: {source}; an expression stands between slashes, all else is taken literally"
    )]
    Allow {
        /// Which entry, from 1.
        number: usize,
        /// What the compiler says.
        source: Box<regex::Error>,
    },
    /// A kind to be turned off that there is not.
    #[error(
        "`off` names `{id}`, which is no rule; the kind stands in the mark, between `[secret:` and `#`"
    )]
    Off {
        /// The id as written.
        id: String,
    },
}

/// A file of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SecretRulesYaml {
    rules: Vec<SecretRuleEntry>,
    allow: Vec<String>,
    off: Vec<String>,
}

/// A rule as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretRuleEntry {
    pub(super) id: String,
    #[serde(default)]
    pub(super) prefixes: Vec<String>,
    #[serde(default)]
    pub(super) body: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    regex: Option<String>,
    #[serde(default)]
    group: Option<usize>,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    check: ValueCheck,
    #[serde(default)]
    personal: bool,
    /// How many lines it may go over: 1, or more.
    #[serde(default = "default_lines")]
    lines: u8,
    #[serde(default)]
    pub(super) examples: SecretRuleExamples,
}

fn default_lines() -> u8 {
    1
}

/// Texts that show what a rule is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SecretRuleExamples {
    pub(super) secret: Vec<String>,
    pub(super) clean: Vec<String>,
}

/// Rules made ready.
pub(super) struct CompiledSecretRules {
    /// The most specific first: where two rules see the same place, the earlier one names it.
    pub(super) rules: Vec<SecretRule>,
    /// All prefixes and keywords, in lower case.
    pub(super) literals: AhoCorasick,
    /// The rules that start from each literal.
    pub(super) by_literal: Vec<Vec<u16>>,
    /// The rules that start from none.
    pub(super) without_literal: Vec<u16>,
    allowed: HashSet<String>,
    allowed_patterns: Vec<Regex>,
}

/// A rule made ready.
pub(super) struct SecretRule {
    pub(super) kind: Arc<str>,
    pub(super) is_personal: bool,
    pub(super) entropy: f64,
    pub(super) check: ValueCheck,
    pub(super) form: SecretRuleForm,
}

/// How a rule is looked for.
pub(super) enum SecretRuleForm {
    /// Right behind one of its prefixes.
    Token { prefixes: Vec<String>, body: LazyRegex, reach: usize, may_wrap: bool },
    /// In the lines around a keyword.
    Value { regex: LazyRegex, group: Option<usize>, lines: u8 },
}

/// An expression that is compiled when it is first needed: most logs need few of them, and all of
/// them take longer than a command should.
pub(super) struct LazyRegex {
    text: String,
    compiled: OnceLock<Reclaimable<Regex>>,
}

impl LazyRegex {
    fn new(text: String) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    pub(super) fn get(&self) -> Arc<Regex> {
        let compiled = self.compiled.get_or_init(|| {
            let text = self.text.clone();
            let known = "a user's are compiled when they are read, ours by a test";
            Reclaimable::new(move || build_regex(&text).expect(known))
        });
        compiled.get()
    }
}

impl CompiledSecretRules {
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|it| &*it.kind)
    }

    /// Whether a value is known to be none: a placeholder, a mark of ours, what the user allows.
    pub(super) fn is_allowed(&self, value: &str) -> bool {
        self.allowed.contains(&value.to_ascii_lowercase())
            || self.allowed_patterns.iter().any(|it| it.is_match(value))
    }
}

fn parse_yaml(yaml: &str) -> Result<SecretRulesYaml, SecretRuleError> {
    if yaml.len() > BYTES_MAX {
        return Err(SecretRuleError::TooLong);
    }
    // An empty file, or one of comments, is no rules.
    Ok(serde_yaml::from_str::<Option<SecretRulesYaml>>(yaml)?.unwrap_or_default())
}

/// Returns the rules of the program's own file, as written.
#[cfg(test)]
pub(super) fn entries(yaml: &str) -> Vec<SecretRuleEntry> {
    parse_yaml(yaml).unwrap().rules
}

/// Returns an example of the program's own file as it would stand in a text.
#[cfg(test)]
pub(super) fn join_example(example: &str) -> String {
    example.replace(EXAMPLE_SEPARATOR, "")
}

/// Makes rules ready: the user's, then the program's.
pub(super) fn compile(
    built_in: &str,
    user: Option<&str>,
) -> Result<CompiledSecretRules, SecretRuleError> {
    let own = parse_yaml(built_in)?;
    let user = user.map(parse_yaml).transpose()?.unwrap_or_default();
    let mut ids = HashSet::new();
    for entry in &user.rules {
        if !ids.insert(entry.id.as_str()) {
            return Err(SecretRuleError::Duplicate { id: entry.id.clone() });
        }
    }
    if let Some(id) =
        user.off.iter().find(|id| !own.rules.iter().chain(&user.rules).any(|it| it.id == **id))
    {
        return Err(SecretRuleError::Off { id: id.clone() });
    }
    let entries: Vec<&SecretRuleEntry> = user
        .rules
        .iter()
        .chain(own.rules.iter().filter(|it| !ids.contains(it.id.as_str())))
        .filter(|it| !user.off.contains(&it.id))
        .collect();
    if entries.len() > RULES_MAX {
        return Err(SecretRuleError::TooMany);
    }
    let mut allowed = HashSet::new();
    let mut allowed_forms = Vec::new();
    for list in [&own.allow, &user.allow] {
        for (at, entry) in list.iter().enumerate() {
            match entry.strip_prefix('/').and_then(|it| it.strip_suffix('/')) {
                Some(form) if !form.is_empty() => {
                    allowed_forms.push(build_regex(form).map_err(|it| SecretRuleError::Allow {
                        number: at + 1,
                        source: Box::new(it),
                    })?);
                }
                _ => {
                    allowed.insert(entry.to_ascii_lowercase());
                }
            }
        }
    }
    let mut literals: HashMap<String, Vec<u16>> = HashMap::new();
    let mut anywhere = Vec::new();
    let mut rules = Vec::with_capacity(entries.len());
    for (at, entry) in (0..).zip(&entries) {
        let rule = compile_rule(entry)?;
        if usize::from(at) < user.rules.len() {
            check_expression(&rule)?;
        }
        rules.push(rule);
        let starts = entry.prefixes.iter().chain(&entry.keywords);
        for literal in starts.map(|it| it.to_lowercase()) {
            let theirs = literals.entry(literal).or_default();
            if theirs.last() != Some(&at) {
                theirs.push(at);
            }
        }
        if entry.prefixes.is_empty() && entry.keywords.is_empty() {
            anywhere.push(at);
        }
    }
    let (texts, by_literal): (Vec<_>, Vec<_>) = literals.into_iter().unzip();
    let compiled = CompiledSecretRules {
        rules,
        literals: AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&texts)
            .expect("a few thousand short literals always fit"),
        by_literal,
        without_literal: anywhere,
        allowed,
        allowed_patterns: allowed_forms,
    };
    for entry in &user.rules {
        check_examples(&compiled, entry)?;
    }
    Ok(compiled)
}

/// Whether the rule finds what its examples say, and nothing where they say so.
pub(super) fn check_examples(
    compiled: &CompiledSecretRules,
    entry: &SecretRuleEntry,
) -> Result<(), SecretRuleError> {
    let is_found =
        |text: &String| scan::find(compiled, text).iter().any(|it| *it.kind == *entry.id);
    let id = || entry.id.clone();
    if compiled.kinds().all(|it| it != entry.id) {
        return Ok(()); // turned off
    }
    if let Some(at) = entry.examples.secret.iter().position(|it| !is_found(it)) {
        return Err(SecretRuleError::MissedExample { id: id(), number: at + 1 });
    }
    match entry.examples.clean.iter().position(is_found) {
        Some(at) => Err(SecretRuleError::FalsePositive { id: id(), number: at + 1 }),
        None => Ok(()),
    }
}

fn compile_rule(entry: &SecretRuleEntry) -> Result<SecretRule, SecretRuleError> {
    let id = || entry.id.clone();
    let is_id = entry.id.split('-').all(|part| {
        !part.is_empty() && part.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    });
    if !is_id || entry.id.len() > 40 {
        return Err(SecretRuleError::Id { id: id() });
    }
    for literal in entry.prefixes.iter().chain(&entry.keywords) {
        let hint = if literal.trim().is_empty() {
            "give at least one character"
        } else if entry.keywords.contains(literal) && *literal != literal.to_lowercase() {
            "write keywords in lower case; they are found in any"
        } else {
            continue;
        };
        return Err(SecretRuleError::Literal { id: id(), literal: literal.clone(), hint });
    }
    let form = match (&entry.body, &entry.regex) {
        (Some(body), None)
            if !entry.prefixes.is_empty() && entry.keywords.is_empty() && entry.group.is_none() =>
        {
            SecretRuleForm::Token {
                prefixes: entry.prefixes.clone(),
                body: LazyRegex::new(format!(r"\A(?:{body})")),
                reach: if entry.lines > 1 { MULTILINE_TOKEN_BYTES_MAX } else { TOKEN_BYTES_MAX },
                may_wrap: entry.lines == 1,
            }
        }
        (None, Some(regex)) if entry.prefixes.is_empty() => SecretRuleForm::Value {
            regex: LazyRegex::new(regex.clone()),
            group: entry.group,
            lines: entry.lines,
        },
        _ => return Err(SecretRuleError::Form { id: id() }),
    };
    Ok(SecretRule {
        kind: entry.id.as_str().into(),
        is_personal: entry.personal,
        entropy: entry.entropy,
        check: entry.check,
        form,
    })
}

/// Compiles the expression of a rule, and asks whether it has the group that is named.
pub(super) fn check_expression(rule: &SecretRule) -> Result<(), SecretRuleError> {
    let id = || rule.kind.to_string();
    let (expression, group) = match &rule.form {
        SecretRuleForm::Token { body, .. } => (body, None),
        SecretRuleForm::Value { regex, group, .. } => (regex, *group),
    };
    let compiled = build_regex(&expression.text)
        .map_err(|it| SecretRuleError::Regex { id: id(), source: Box::new(it) })?;
    let groups = compiled.captures_len() - 1;
    match group.filter(|it| *it > groups) {
        Some(group) => Err(SecretRuleError::Group { id: id(), group, groups }),
        None => Ok(()),
    }
}

fn build_regex(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build()
}
