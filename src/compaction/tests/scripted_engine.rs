//! An engine for tests that repeats what it reads, and a root to run it on.

use std::{fs, path::Path};

use crate::compaction::{Compactor, RunContext};
use crate::{
    config::{Config, environment::Environment},
    engine::{
        DistillInput, Distillation, Engine, EngineDraft, EngineError, ExtractInput, Extraction,
        MemoryDraft, StatementDraft, SummaryInput, WisdomOp,
    },
    memory::{
        address::Citation,
        item::{Item, SummarySection},
        period::Grain,
        statement::StatementKind,
        typed::MemoryType,
    },
    privacy::SanitizedLog,
    store::{
        db::lineage::Lineage,
        fs::{layout::Layout, vault::Vault},
    },
};

/// Believes every line, and drafts as much of it as it can.
pub(crate) struct ScriptedEngine {
    /// Rewords a line.
    pub(crate) rephrase: fn(&str) -> String,
    /// Whether it acts as a model.
    pub(crate) is_model: bool,
}

impl Default for ScriptedEngine {
    fn default() -> Self {
        Self { rephrase: str::to_owned, is_model: false }
    }
}

impl ScriptedEngine {
    /// Returns its words for each line of a log with content.
    fn lines<'a>(&'a self, log: &'a SanitizedLog) -> impl Iterator<Item = (String, Citation)> + 'a {
        let content = log.lines().iter().filter(|it| it.is_content());
        content.map(|it| {
            ((self.rephrase)(it.words()), Citation::single_line(log.stem().clone(), it.number()))
        })
    }
}

impl Engine for ScriptedEngine {
    fn id(&self) -> &'static str {
        "scripted/1"
    }

    fn is_model(&self) -> bool {
        self.is_model
    }

    fn summarize(&self, input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError> {
        let item = |(text, citation)| Item { text, citation: Some(citation) };
        let items = input.logs.iter().flat_map(|it| self.lines(it)).map(item).collect();
        let section = match input.period.grain() {
            Grain::Month => SummarySection::Themes,
            _ => SummarySection::Decisions,
        };
        Ok(EngineDraft { sections: vec![(section, items)], ..EngineDraft::default() })
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        let draft = |(text, citation): (String, Citation)| MemoryDraft {
            kind: MemoryType::Feedback,
            topic: text.clone(),
            name: text.chars().take(60).collect(),
            description: text.chars().take(60).collect(),
            statement: text.clone(),
            why: Some(text.clone()),
            how_to_apply: Some(text),
            citation,
        };
        let statement = |(text, citation): (String, Citation)| StatementDraft {
            kind: StatementKind::Rule,
            topic: text.chars().take(60).collect(),
            text,
            citation,
            replaces: None,
        };
        let lines = self.lines(input.log);
        Ok(if self.is_model {
            Extraction { statements: lines.map(statement).collect(), ..Extraction::default() }
        } else {
            Extraction { drafts: lines.map(draft).collect(), ..Extraction::default() }
        })
    }

    fn distill(&self, input: &DistillInput<'_>) -> Result<Distillation, EngineError> {
        let add = |(text, citation): (String, Citation)| WisdomOp::Add {
            title: text.chars().take(60).collect(),
            text,
            category: None,
            reason: "it was said".to_owned(),
            citation,
        };
        let ops = input.logs.iter().flat_map(|it| self.lines(it)).map(add).collect();
        Ok(Distillation { ops, ..Distillation::default() })
    }
}

/// Writes a file with an old modification time.
pub(crate) fn write_old_file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(path, text).unwrap();
    let long_ago = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    fs::File::open(path).unwrap().set_times(long_ago).unwrap();
}

/// Returns the text of all files except the logs.
pub(crate) fn generated_text(vault: &Vault) -> String {
    let mut all = String::new();
    for path in vault.files_below("", usize::MAX).0 {
        if path.starts_with("memory/2020-") || vault.layout().kind_of(&path).is_none() {
            continue;
        }
        all.push_str(&vault.read_text(&path).unwrap().unwrap());
    }
    all
}

/// Runs a test with an engine on the root in a folder.
pub(crate) fn with_compactor(
    dir: &Path,
    engine: &dyn Engine,
    test: impl FnOnce(&mut Compactor<'_>),
) {
    let around = Environment::default();
    let config = Config::from_text(None, &[], &around).unwrap();
    let settings = config.open(dir, &around).unwrap();
    let vault = Vault::new(Layout::new(dir, "memory"));
    vault.create_private_dir().unwrap();
    let mut lineage = Lineage::open(&vault.layout().database()).unwrap();
    let clock = || "2020-06-01T00:00:00Z".parse().unwrap();
    test(&mut Compactor::new(RunContext {
        vault: &vault,
        lineage: &mut lineage,
        engine,
        settings: &settings,
        clock: &clock,
        write_wisdom_block: |_, _| Ok(()),
    }));
}
