//! Prompt files: versioned instructions, which the user can override.
//!
//! A prompt is a Markdown file with frontmatter (`name`, `version`, `temperature`,
//! `max_output_tokens`) and the instructions as its body. `{{name}}` in the body is a placeholder for
//! a setting, never for text of a log: the instructions stay the same from call to call, so that a
//! provider can cache them. A file of the same name in `prompts/` of the configuration's folder takes
//! precedence.

use serde::Deserialize;

use crate::memory::{frontmatter, hash::ContentHash};

/// The name of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromptName {
    /// For weeks.
    Weekly,
    /// For months.
    Monthly,
    /// For typed memories.
    Extract,
    /// For `WISDOM.md`.
    Wisdom,
    /// For a week and the typed memories of its days.
    Combined,
    /// For sessions of coding agents.
    Session,
    /// For the handoff of a session, with tools.
    Handoff,
    /// For the state of a session, from which it can be resumed.
    Recovery,
    /// For items that failed the checks.
    Repair,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The version that its author gave it.
    pub version: u32,
    /// The sampling temperature.
    pub temperature: f32,
    /// The longest reply, in tokens.
    pub max_output_tokens: u32,
    /// The instructions, with placeholders.
    body: String,
    /// The hash of the whole file.
    hash: ContentHash,
}

/// All prompts.
#[derive(Clone, Debug)]
pub struct Prompts([Prompt; 9]);

/// Why a prompt file is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Its frontmatter is missing or wrong.
    #[error("the frontmatter of the prompt `{name}` is invalid: {reason}")]
    Frontmatter {
        /// The prompt.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// It has no instructions.
    #[error("the prompt `{0}` contains no instructions")]
    Empty(&'static str),
    /// It has an unknown placeholder.
    #[error(
        "the prompt `{name}` has the unknown placeholder {{{{{placeholder}}}}}; allowed are: {allowed}"
    )]
    Placeholder {
        /// The prompt.
        name: &'static str,
        /// The placeholder.
        placeholder: String,
        /// The placeholders that it may have.
        allowed: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptHeader {
    name: String,
    version: u32,
    temperature: f32,
    max_output_tokens: u32,
}

impl PromptName {
    /// All prompts.
    pub const ALL: [Self; 9] = [
        Self::Weekly,
        Self::Monthly,
        Self::Extract,
        Self::Wisdom,
        Self::Combined,
        Self::Session,
        Self::Handoff,
        Self::Recovery,
        Self::Repair,
    ];

    /// Returns the name of its file, without the extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Extract => "extract",
            Self::Wisdom => "wisdom",
            Self::Combined => "combined",
            Self::Session => "session",
            Self::Handoff => "handoff",
            Self::Recovery => "recovery",
            Self::Repair => "repair",
        }
    }

    /// Returns the text of the built-in prompt file.
    pub fn built_in(self) -> &'static str {
        match self {
            Self::Weekly => include_str!("../../prompts/weekly.md"),
            Self::Monthly => include_str!("../../prompts/monthly.md"),
            Self::Extract => include_str!("../../prompts/extract.md"),
            Self::Wisdom => include_str!("../../prompts/wisdom.md"),
            Self::Combined => include_str!("../../prompts/combined.md"),
            Self::Session => include_str!("../../prompts/session.md"),
            Self::Handoff => include_str!("../../prompts/handoff.md"),
            Self::Recovery => include_str!("../../prompts/recovery.md"),
            Self::Repair => include_str!("../../prompts/repair.md"),
        }
    }

    /// Returns the placeholders that its body may have.
    fn placeholders(self) -> &'static [&'static str] {
        match self {
            Self::Weekly | Self::Monthly => &["sections", "ratio"],
            Self::Extract | Self::Handoff | Self::Recovery | Self::Repair => &[],
            Self::Wisdom => &["max_entries", "categories"],
            Self::Combined => &["weekly", "extract"],
            Self::Session => &["scope"],
        }
    }
}

impl Prompts {
    /// Reads all prompts; `own` returns the user's own file of a name.
    pub(crate) fn read(own: impl Fn(&str) -> Option<String>) -> Result<Self, PromptError> {
        let [weekly, monthly, extract, wisdom, combined, session, handoff, recovery, repair] =
            PromptName::ALL.map(|name| {
                let text = own(name.name());
                Prompt::parse(name, text.as_deref().unwrap_or_else(|| name.built_in()))
            });
        Ok(Self([
            weekly?, monthly?, extract?, wisdom?, combined?, session?, handoff?, recovery?, repair?,
        ]))
    }

    /// Returns a prompt.
    pub fn get(&self, name: PromptName) -> &Prompt {
        &self.0[name as usize]
    }
}

impl Prompt {
    /// Reads a prompt file.
    pub(crate) fn parse(name: PromptName, text: &str) -> Result<Self, PromptError> {
        let bad = |reason: String| PromptError::Frontmatter { name: name.name(), reason };
        let split = frontmatter::split(text);
        let yaml = split.yaml.ok_or_else(|| bad("there is none".to_owned()))?;
        let head = frontmatter::parse(yaml, frontmatter::YAML_BYTES_MAX);
        let head = head.map_err(|e| bad(e.to_string()))?;
        let head: PromptHeader =
            serde_yaml::from_value(head.into()).map_err(|e| bad(e.to_string()))?;
        let body = split.body(text);
        if head.name != name.name() {
            return Err(bad(format!("its name is `{}`", head.name)));
        }
        if !(0.0..=2.0).contains(&head.temperature) {
            return Err(bad("temperature is not between 0 and 2".to_owned()));
        }
        if head.max_output_tokens < 64 {
            return Err(bad("max_output_tokens is under 64".to_owned()));
        }
        let body = body.trim();
        if body.is_empty() {
            return Err(PromptError::Empty(name.name()));
        }
        let allowed = name.placeholders();
        if let Some(placeholder) = placeholders(body).find(|it| !allowed.contains(it)) {
            return Err(PromptError::Placeholder {
                name: name.name(),
                placeholder: placeholder.to_owned(),
                allowed: if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") },
            });
        }
        Ok(Self {
            version: head.version,
            temperature: head.temperature,
            max_output_tokens: head.max_output_tokens,
            body: body.to_owned(),
            hash: ContentHash::of(text),
        })
    }

    /// Returns the instructions with the placeholders filled.
    pub fn fill(&self, values: &[(&str, &str)]) -> String {
        let mut filled = self.body.clone();
        for (name, value) in values {
            filled = filled.replace(&format!("{{{{{name}}}}}"), value);
        }
        filled
    }

    /// Returns the id that a run records: version and hash.
    pub fn id(&self) -> String {
        format!("{}@{}", self.version, self.hash.hex8())
    }
}

fn placeholders(body: &str) -> impl Iterator<Item = &str> {
    let starts = body.split("{{").skip(1);
    starts.filter_map(|it| it.split_once("}}")).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prompts_are_valid() {
        let prompts = Prompts::read(|_| None).unwrap();
        for name in PromptName::ALL {
            let values: Vec<_> = name.placeholders().iter().map(|it| (*it, "x")).collect();
            let filled = prompts.get(name).fill(&values);
            assert!(filled.starts_with("<TASK>") && !filled.contains("{{"), "{filled}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = Prompt::parse(PromptName::Weekly, text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn an_invalid_prompt_is_reported_with_the_reason() {
        let head =
            "---\nname: weekly\nversion: 1\ntemperature: 0.2\nmax_output_tokens: 4096\n---\n";
        check("Do it.", "there is none");
        check(&head.replace("weekly", "monthly"), "its name is `monthly`");
        check(&head.replace("0.2", "7"), "temperature");
        check(&head.replace("4096", "1"), "max_output_tokens");
        check(&head.replace("version", "verison"), "verison");
        check(head, "no instructions");
        check(&format!("{head}Do {{{{logs}}}}."), "allowed are: sections, ratio");
    }

    #[test]
    fn the_users_prompt_takes_precedence_and_has_its_own_id() {
        let own = |name: &str| {
            let text = PromptName::Wisdom.built_in().replace("version: 5", "version: 7");
            (name == "wisdom").then_some(text)
        };
        let (theirs, ours) = (Prompts::read(own).unwrap(), Prompts::read(|_| None).unwrap());
        assert_eq!(theirs.get(PromptName::Wisdom).version, 7);
        assert_ne!(theirs.get(PromptName::Wisdom).id(), ours.get(PromptName::Wisdom).id());
        assert_eq!(theirs.get(PromptName::Weekly).id(), ours.get(PromptName::Weekly).id());
    }
}
