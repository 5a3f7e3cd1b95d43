//! Secret rules as data: read, checked, and compiled for one pass over a text.
//!
//! A rule names the literals that it starts from, so that its expression runs only where one of them
//! occurs. There are two forms:
//!
//! - `prefixes` and `body`: a token whose first letters identify its issuer. The body is matched
//!   directly after the prefix and nowhere else.
//! - `keywords` and `regex`: a value identified by the words before it. The expression runs over the
//!   line with a keyword; without keywords, over the whole text.
//!
//! Expressions are those of the crate `regex`, which run in linear time on any input.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{check::ValueCheck, literals::Literals, scan};
use crate::privacy::reclaimable::Reclaimable;

/// The longest file of rules, in bytes.
const BYTES_MAX: usize = 256 * 1024;

/// The most rules; each keyword costs time on each text.
const RULES_MAX: usize = 500;

/// The most memory of one compiled expression, in bytes: enough for any token, too little for
/// `(a{1000}){1000}`.
const REGEX_BYTES_MAX: usize = 2 * 1024 * 1024;

/// How far a token may extend after its prefix, in bytes: a long JWT.
const TOKEN_BYTES_MAX: usize = 4 * 1024;

/// How far a token of several lines may extend, in bytes: a large RSA key with a margin.
const MULTILINE_TOKEN_BYTES_MAX: usize = 16 * 1024;

/// What stands for the keywords of a rule in its expression.
const KEYWORDS: &str = "{keywords}";

/// Splits examples in the built-in file, so that no scanner takes them for keys in use.
#[cfg(test)]
const EXAMPLE_SEPARATOR: char = '¦';

/// What is wrong with secret rules.
#[derive(Debug, thiserror::Error)]
pub enum SecretRuleError {
    /// The file is too long.
    #[error("the secret rules are longer than {} KiB; remove what is not needed", BYTES_MAX / 1024)]
    TooLong,
    /// There are too many rules.
    #[error("there are over {RULES_MAX} secret rules; combine similar ones into one expression")]
    TooMany,
    /// The YAML does not have the expected form.
    #[error(
        "the secret rules cannot be read: {0}; expected `rules:`, `allow:` or `off:` with a list"
    )]
    Yaml(#[from] serde_yaml::Error),
    /// The built-in rules do not have the expected form.
    #[error("the built-in secret rules cannot be read: {0}")]
    BuiltIn(#[from] serde_json::Error),
    /// An id that a placeholder cannot contain.
    #[error(
        "secret rule `{id}`: an id consists of a-z, 0-9 and single dashes, such as `acme-token`"
    )]
    Id {
        /// The id as written.
        id: String,
    },
    /// Two rules of one id in one file.
    #[error(
        "secret rule `{id}`: two rules have this id; rename one, or join their expressions with `|`"
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
    /// A literal that would match everywhere or nowhere.
    #[error("secret rule `{id}`: `{literal}` cannot be searched for; {hint}")]
    Literal {
        /// The rule.
        id: String,
        /// The keyword or prefix as written.
        literal: String,
        /// How to fix it.
        hint: &'static str,
    },
    /// An expression that does not compile.
    #[error(
        "secret rule `{id}`: its expression does not compile: {source}; look-around and back-references are not supported, and repeats must be small"
    )]
    Regex {
        /// The rule.
        id: String,
        /// The error of the compiler.
        source: Box<regex::Error>,
    },
    /// A group that the expression lacks.
    #[error("secret rule `{id}`: there is no group {group} in its expression; it has {groups}")]
    Group {
        /// The rule.
        id: String,
        /// The group in the rule.
        group: usize,
        /// How many groups the expression has.
        groups: usize,
    },
    /// An example of a secret that the rule does not find.
    #[error(
        "secret rule `{id}`: it does not find its example {number} of a secret; fix the expression, or lower `entropy`"
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
        "entry {number} of `allow` does not compile: {source}; text between slashes is an expression, all else is literal"
    )]
    Allow {
        /// Which entry, from 1.
        number: usize,
        /// The error of the compiler.
        source: Box<regex::Error>,
    },
    /// An unknown kind in `off`.
    #[error(
        "`off` names `{id}`, which is not a rule; a placeholder names its kind between `[secret:` and `#`"
    )]
    Off {
        /// The id as written.
        id: String,
    },
}

/// A file of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SecretRulesFile {
    rules: Vec<SecretRuleEntry>,
    allow: Vec<String>,
    off: Vec<String>,
}

/// A rule as written in the file.
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
    /// How many lines the secret may span.
    #[serde(default = "default_lines")]
    lines: u8,
    #[serde(default)]
    pub(super) examples: SecretRuleExamples,
}

fn default_lines() -> u8 {
    1
}

/// Example texts of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SecretRuleExamples {
    pub(super) secret: Vec<String>,
    pub(super) clean: Vec<String>,
}

/// Compiled rules.
pub(super) struct CompiledSecretRules {
    /// The most specific rule first: where two rules match, the earlier one determines the kind.
    pub(super) rules: Vec<SecretRule>,
    pub(super) literals: Literals,
    /// The rules without literals.
    pub(super) without_literal: Vec<u16>,
    allowed: AllowedValues,
}

/// Values that are not secrets: placeholders, and what the user allows.
#[derive(Default)]
struct AllowedValues {
    /// In lower case.
    literals: HashSet<String>,
    patterns: Vec<Regex>,
}

/// A compiled rule.
pub(super) struct SecretRule {
    pub(super) kind: Arc<str>,
    pub(super) is_personal: bool,
    pub(super) entropy: f64,
    pub(super) check: ValueCheck,
    pub(super) form: SecretRuleForm,
}

/// How a rule finds its secrets.
pub(super) enum SecretRuleForm {
    /// Directly after one of its prefixes.
    Token { prefixes: Vec<String>, body: LazyRegex, reach: usize, may_wrap: bool },
    /// In the lines of a keyword.
    Value { regex: LazyRegex, group: Option<usize>, lines: u8 },
}

/// An expression that is compiled on first use: most logs need few, and compiling all of them takes
/// longer than a command should.
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
            let checked = "the user's rules are compiled when they are read, ours by a test";
            Reclaimable::new(move || build_regex(&text).expect(checked))
        });
        compiled.get()
    }
}

impl CompiledSecretRules {
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|it| &*it.kind)
    }

    /// Returns whether a value is known not to be a secret.
    pub(super) fn is_allowed(&self, value: &str) -> bool {
        self.allowed.literals.contains(&value.to_ascii_lowercase())
            || self.allowed.patterns.iter().any(|it| it.is_match(value))
    }
}

impl AllowedValues {
    /// Adds a list of `allow`; a text between slashes is an expression.
    fn add(&mut self, list: &[String]) -> Result<(), SecretRuleError> {
        for (entry, number) in list.iter().zip(1..) {
            match entry.strip_prefix('/').and_then(|it| it.strip_suffix('/')) {
                Some(pattern) if !pattern.is_empty() => {
                    let pattern = build_regex(pattern)
                        .map_err(|it| SecretRuleError::Allow { number, source: Box::new(it) })?;
                    self.patterns.push(pattern);
                }
                _ => {
                    self.literals.insert(entry.to_ascii_lowercase());
                }
            }
        }
        Ok(())
    }
}

fn parse_yaml(yaml: &str) -> Result<SecretRulesFile, SecretRuleError> {
    if yaml.len() > BYTES_MAX {
        return Err(SecretRuleError::TooLong);
    }
    // An empty file, or one with only comments, has no rules.
    Ok(serde_yaml::from_str::<Option<SecretRulesFile>>(yaml)?.unwrap_or_default())
}

/// Returns the rules of the built-in file, as written.
#[cfg(test)]
pub(super) fn entries(yaml: &str) -> Vec<SecretRuleEntry> {
    parse_yaml(yaml).unwrap().rules
}

/// Returns an example of the built-in file as it would appear in a text.
#[cfg(test)]
pub(super) fn join_example(example: &str) -> String {
    example.replace(EXAMPLE_SEPARATOR, "")
}

/// Compiles the user's rules, YAML, and then the built-in ones, JSON.
pub(super) fn compile(
    built_in: &str,
    user: Option<&str>,
) -> Result<CompiledSecretRules, SecretRuleError> {
    let built_in: SecretRulesFile = serde_json::from_str(built_in)?;
    let user = user.map(parse_yaml).transpose()?.unwrap_or_default();
    let entries = active_entries(&user, &built_in)?;
    let mut allowed = AllowedValues::default();
    allowed.add(&built_in.allow)?;
    allowed.add(&user.allow)?;
    let mut literals = Vec::new();
    let mut without_literal = Vec::new();
    let mut rules = Vec::with_capacity(entries.len());
    for (at, entry) in (0..).zip(&entries) {
        let rule = compile_rule(entry)?;
        if usize::from(at) < user.rules.len() {
            check_expression(&rule)?;
        }
        rules.push(rule);
        let its_literals = entry.prefixes.iter().chain(&entry.keywords);
        literals.extend(its_literals.map(|it| (it.as_str(), at)));
        if entry.prefixes.is_empty() && entry.keywords.is_empty() {
            without_literal.push(at);
        }
    }
    let compiled = CompiledSecretRules {
        rules,
        literals: Literals::new(literals.into_iter()),
        without_literal,
        allowed,
    };
    for entry in &user.rules {
        check_examples(&compiled, entry)?;
    }
    Ok(compiled)
}

/// Returns the rules that apply, the user's first: without those replaced or turned off.
fn active_entries<'a>(
    user: &'a SecretRulesFile,
    built_in: &'a SecretRulesFile,
) -> Result<Vec<&'a SecretRuleEntry>, SecretRuleError> {
    let mut user_ids = HashSet::new();
    for entry in &user.rules {
        if !user_ids.insert(entry.id.as_str()) {
            return Err(SecretRuleError::Duplicate { id: entry.id.clone() });
        }
    }
    let is_known = |id: &String| user.rules.iter().chain(&built_in.rules).any(|it| it.id == *id);
    if let Some(id) = user.off.iter().find(|it| !is_known(it)) {
        return Err(SecretRuleError::Off { id: id.clone() });
    }
    let built_in = built_in.rules.iter().filter(|it| !user_ids.contains(it.id.as_str()));
    let entries: Vec<_> =
        user.rules.iter().chain(built_in).filter(|it| !user.off.contains(&it.id)).collect();
    if entries.len() > RULES_MAX { Err(SecretRuleError::TooMany) } else { Ok(entries) }
}

/// Checks that a rule finds its examples of secrets, and nothing in its clean ones.
pub(super) fn check_examples(
    compiled: &CompiledSecretRules,
    entry: &SecretRuleEntry,
) -> Result<(), SecretRuleError> {
    let is_found =
        |text: &String| scan::find(compiled, text).iter().any(|it| *it.kind == *entry.id);
    let id = || entry.id.clone();
    if compiled.kinds().all(|it| it != entry.id) {
        return Ok(()); // The rule is turned off.
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
            "write keywords in lower case; they match in any case"
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
            // A search starts within the text, so that `^` must match at the start of each line.
            regex: LazyRegex::new(format!("(?m){}", with_keywords(regex, &entry.keywords))),
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

/// Returns an expression with the keywords of its rule, as alternatives, for `{keywords}`.
fn with_keywords(regex: &str, keywords: &[String]) -> String {
    if !regex.contains(KEYWORDS) {
        return regex.to_owned();
    }
    let mut keywords: Vec<_> = keywords.iter().map(|it| regex::escape(it)).collect();
    keywords.sort_by_key(|it| std::cmp::Reverse(it.len())); // The longest of one start first.
    regex.replace(KEYWORDS, &format!("(?:{})", keywords.join("|")))
}

/// Checks that the expression of a rule compiles and has the named group.
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
