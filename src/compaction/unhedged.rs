//! An engine that tells a guess as a fact, through the whole chain: what it says is kept out of every
//! tier, counted, and the line is told as one that reached nothing.

use std::{fs, path::Path};

use super::{
    poison::{lines, served, with_engine},
    *,
};
use crate::{
    engine::{DistilInput, Draft, Engine, ExtractInput, FoldInput, MemoryDraft, WisdomOp},
    memory::{
        address::Citation,
        item::{Item, Section},
        typed::MemoryType,
    },
    privacy::ServedLog,
};

/// Says each line that it is shown, with other words in the place of "Maybe".
struct Retelling {
    maybe: &'static str,
}

impl Retelling {
    fn said<'a>(&'a self, log: &'a ServedLog) -> impl Iterator<Item = (String, Citation)> + 'a {
        lines(log).map(|(text, citation)| (text.replace("Maybe ", self.maybe), citation))
    }
}

impl Engine for Retelling {
    fn id(&self) -> &'static str {
        "retelling/1"
    }

    fn fold(&self, input: &FoldInput<'_>) -> Result<Draft, EngineError> {
        let item = |(text, citation)| Item { text, citation: Some(citation) };
        let items = input.logs.iter().flat_map(|it| self.said(it)).map(item).collect();
        let section = match input.period.grain() {
            crate::memory::period::Grain::Month => Section::Themes,
            _ => Section::Decisions,
        };
        Ok(Draft { sections: vec![(section, items)], left_out: Vec::new() })
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Vec<MemoryDraft>, EngineError> {
        let draft = |(text, citation): (String, Citation)| MemoryDraft {
            kind: MemoryType::Project,
            topic: text.clone(),
            name: text.clone(),
            description: text.clone(),
            statement: text,
            why: None,
            how_to_apply: None,
            citation,
        };
        Ok(self.said(input.log).map(draft).collect())
    }

    fn distil(&self, input: &DistilInput<'_>) -> Result<Vec<WisdomOp>, EngineError> {
        let add = |(text, citation): (String, Citation)| WisdomOp::Add {
            title: text.chars().take(40).collect(),
            text,
            category: None,
            reason: "it was said".to_owned(),
            citation,
        };
        Ok(input.logs.iter().flat_map(|it| self.said(it)).map(add).collect())
    }
}

/// `rejected` is how many items of each tier do not stand the check.
#[track_caller]
fn check(maybe: &'static str, guess: &str, rejected: u32) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("memory/2020-03-03.md");
    write(
        &log,
        "- Decided to keep the blue pump, because it is quiet.\n- Maybe we move to Postgres in June.\n",
    );
    with_engine(dir.path(), &Retelling { maybe }, |compactor| {
        let passed = compactor.pass("test", &Selection::default(), &mut ()).unwrap();
        for tier in Tier::ALL {
            let mut jobs = passed.report.jobs.iter().filter(|it| it.tier == tier.name());
            let job = jobs.next().unwrap_or_else(|| panic!("{}: {:?}", tier.name(), passed.report));
            assert_eq!(job.outcome, "written", "{job:?}");
            assert_eq!(job.figures.rejected, rejected, "{job:?}");
        }
        let week = passed.report.jobs.iter().find(|it| it.tier == "weekly").unwrap();
        assert_eq!(week.figures.uncovered, rejected, "{week:?}");
        let left_out = compactor.lineage.left_out("memory/weekly/2020-W10.md").unwrap();
        let told: Vec<String> = left_out.iter().map(|(at, why)| format!("{at} {why}")).collect();
        let expected: &[&str] = if rejected > 0 { &["2020-03-03:2 rejected"] } else { &[] };
        assert_eq!(told, expected);
        let all = served(compactor.vault);
        let said = |words: &str| all.matches(words).count();
        assert!(said("blue pump") >= 4, "in each tier: {all}");
        assert_eq!(said(guess) > 0, rejected == 0, "{all}");
        assert_eq!(said("move to Postgres"), said(guess), "{all}");
    });
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(path, text).unwrap();
    let long_ago = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    fs::File::open(path).unwrap().set_times(long_ago).unwrap();
}

#[test]
fn a_guess_that_an_engine_tells_as_a_fact_reaches_no_tier() {
    check("", "we move to Postgres", 1);
}

#[test]
fn a_guess_that_is_told_as_one_reaches_them_all() {
    check("Maybe ", "Maybe we move to Postgres", 0);
    check("Perhaps ", "Perhaps we move to Postgres", 0);
}
