//! Prompt files: instructions with a version, overridable by a person.
//!
//! A prompt is a Markdown file with frontmatter (`name`, `version`, `temperature`,
//! `max_output_tokens`) and the instructions as its body. `{{name}}` in the body is a placeholder that
//! settings fill, never a log: the instructions stay the same from call to call, so that a provider
//! can keep them. A file of the same name in `prompts/` of the configuration's folder wins.

use serde::Deserialize;

use crate::memory::{frontmatter, hash::ContentHash};

/// Which prompt.
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
    /// For whoever takes a session over, with tools.
    Handoff,
    /// Where a session stands.
    Recovery,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Which version of it, as its author counts.
    pub version: u32,
    /// How freely the model chooses its words.
    pub temperature: f32,
    /// How much it may write, in tokens.
    pub max_output_tokens: u32,
    /// The instructions, with placeholders.
    body: String,
    /// Of the whole file.
    hash: ContentHash,
}

/// All prompts.
#[derive(Clone, Debug)]
pub struct Prompts([Prompt; 8]);

/// A prompt file that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Its frontmatter is not what it should be.
    #[error("the frontmatter of the prompt `{name}` is not right: {reason}")]
    Frontmatter {
        /// The prompt.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// It has no instructions.
    #[error("the prompt `{0}` holds no instructions")]
    Empty(&'static str),
    /// It names something that nothing fills.
    #[error(
        "the prompt `{name}` has the placeholder {{{{{placeholder}}}}}, which nothing fills; it may have: {known}"
    )]
    Placeholder {
        /// The prompt.
        name: &'static str,
        /// The placeholder.
        placeholder: String,
        /// Those that there are.
        known: String,
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
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Weekly,
        Self::Monthly,
        Self::Extract,
        Self::Wisdom,
        Self::Combined,
        Self::Session,
        Self::Handoff,
        Self::Recovery,
    ];

    /// Returns the name of its file, without the ending.
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
        }
    }

    /// Returns our own prompt, as its file has it.
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
        }
    }

    /// Returns the placeholders that its body may have.
    fn placeholders(self) -> &'static [&'static str] {
        match self {
            Self::Weekly | Self::Monthly => &["sections", "ratio"],
            Self::Extract | Self::Handoff | Self::Recovery => &[],
            Self::Wisdom => &["max_entries", "categories"],
            Self::Combined => &["weekly", "extract"],
            Self::Session => &["scope"],
        }
    }
}

impl Prompts {
    /// Reads them; `own` returns a person's own file of that name.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a person's own.
    pub fn read(own: impl Fn(&str) -> Option<String>) -> Result<Self, PromptError> {
        let [weekly, monthly, extract, wisdom, combined, session, handoff, recovery] =
            PromptName::ALL.map(|name| {
                let text = own(name.name());
                Prompt::parse(name, text.as_deref().unwrap_or_else(|| name.built_in()))
            });
        Ok(Self([weekly?, monthly?, extract?, wisdom?, combined?, session?, handoff?, recovery?]))
    }

    /// Returns one of them.
    pub fn get(&self, name: PromptName) -> &Prompt {
        &self.0[name as usize]
    }
}

impl Prompt {
    /// Reads a prompt file.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it.
    pub fn parse(name: PromptName, text: &str) -> Result<Self, PromptError> {
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
        let known = name.placeholders();
        if let Some(placeholder) = placeholders(body).find(|it| !known.contains(it)) {
            return Err(PromptError::Placeholder {
                name: name.name(),
                placeholder: placeholder.to_owned(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
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

    /// Returns what a run records of it: version and hash.
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
    fn the_built_in_prompts_are_prompts() {
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
    fn a_prompt_with_a_mistake_says_which() {
        let head =
            "---\nname: weekly\nversion: 1\ntemperature: 0.2\nmax_output_tokens: 4096\n---\n";
        check("Do it.", "there is none");
        check(&head.replace("weekly", "monthly"), "its name is `monthly`");
        check(&head.replace("0.2", "7"), "temperature");
        check(&head.replace("4096", "1"), "max_output_tokens");
        check(&head.replace("version", "verison"), "verison");
        check(head, "no instructions");
        check(&format!("{head}Do {{{{logs}}}}."), "it may have: sections, ratio");
    }

    #[test]
    fn a_persons_own_wins_and_is_told_apart() {
        let own = |name: &str| {
            let text = PromptName::Wisdom.built_in().replace("version: 2", "version: 7");
            (name == "wisdom").then_some(text)
        };
        let (theirs, ours) = (Prompts::read(own).unwrap(), Prompts::read(|_| None).unwrap());
        assert_eq!(theirs.get(PromptName::Wisdom).version, 7);
        assert_ne!(theirs.get(PromptName::Wisdom).id(), ours.get(PromptName::Wisdom).id());
        assert_eq!(theirs.get(PromptName::Weekly).id(), ours.get(PromptName::Weekly).id());
    }
}
