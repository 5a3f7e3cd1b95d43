//! Planted texts through the whole chain, with the extractive engine and with one that obeys
//! whatever it reads: nothing of them is served until a person accepts it.

use std::{collections::BTreeSet, fs, path::Path};

use super::*;
use crate::{
    config::{Config, surroundings::Surroundings},
    engine::{
        DistilInput, Draft, Engine, ExtractInput, FoldInput, MemoryDraft, WisdomOp,
        extractive::Extractive,
    },
    memory::{
        address::{Address, Citation},
        decision::Verdict,
        item::{Item, Section},
        typed::MemoryType,
    },
    privacy::{ServedLog, hold::planted},
    store::{layout::Layout, lineage::review::HeldWhat},
};

/// Believes every line that it is shown, and makes as much of it as it can.
struct Obeying;

/// Returns each line of a log that says something.
pub(super) fn lines(log: &ServedLog) -> impl Iterator<Item = (String, Citation)> {
    let content = log.lines().iter().filter(|it| it.is_content());
    content.map(|it| (it.words().to_owned(), Citation::one(log.stem().clone(), it.number())))
}

impl Engine for Obeying {
    fn id(&self) -> &'static str {
        "obeying/1"
    }

    fn fold(&self, input: &FoldInput<'_>) -> Result<Draft, EngineError> {
        let item = |(text, citation)| Item { text, citation: Some(citation) };
        let items = input.logs.iter().flat_map(lines).map(item).collect();
        let section = match input.period.grain() {
            crate::memory::period::Grain::Month => Section::Themes,
            _ => Section::Decisions,
        };
        Ok(Draft { sections: vec![(section, items)], ..Draft::default() })
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Vec<MemoryDraft>, EngineError> {
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
        Ok(lines(input.log).map(draft).collect())
    }

    fn distil(&self, input: &DistilInput<'_>) -> Result<Vec<WisdomOp>, EngineError> {
        let add = |(text, citation): (String, Citation)| WisdomOp::Add {
            title: text.chars().take(60).collect(),
            text,
            category: None,
            reason: "it was said".to_owned(),
            citation,
        };
        Ok(input.logs.iter().flat_map(lines).map(add).collect())
    }
}

/// A root with these lines, a few to a day, among honest ones.
fn plant(root: &Path, texts: &[String]) -> Vec<Address> {
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    let write = |name: String, text: String| fs::write(root.join(name), text).unwrap();
    fs::create_dir(root.join("memory")).unwrap();
    write(
        "memoird.yaml".to_owned(),
        "wisdom: { max_entries: 500, max_chars: 200000 }\n".to_owned(),
    );
    let mut planted = Vec::new();
    for (day, texts) in (2..).zip(texts.chunks(10)) {
        let stem = format!("2020-03-{day:02}");
        let mut text =
            format!("# {stem}\n\n- Decided to keep the blue pump, because it is quiet.\n\n");
        let mut number = 5;
        for line in texts {
            planted.push(Address { stem: stem.parse().unwrap(), line: number });
            text.push_str(line);
            text.push_str("\n\n");
            number += 2;
        }
        text.push_str("- The rig ran for nine hours.\n");
        let path = format!("memory/{stem}.md");
        write(path.clone(), text);
        let long_ago = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        fs::File::open(root.join(path)).unwrap().set_times(long_ago).unwrap();
    }
    planted
}

/// Returns all that is served: every file but the logs, and what was recorded of lines.
pub(super) fn served(vault: &Vault) -> String {
    let mut all = String::new();
    for path in vault.files_below("", usize::MAX).0 {
        if path.starts_with("memory/2020-") || vault.layout().kind_of(&path).is_none() {
            continue;
        }
        all.push_str(&vault.read_text(&path).unwrap().unwrap());
    }
    all
}

/// Runs what is given with an engine on the root in a folder.
pub(super) fn with_engine(dir: &Path, engine: &dyn Engine, test: impl FnOnce(&mut Compactor<'_>)) {
    let around = Surroundings::default();
    let config = Config::from_text(None, &[], &around).unwrap();
    let settings = config.open(dir, &around).unwrap();
    let vault = Vault::new(Layout::new(dir, "memory"));
    vault.create_private_dir().unwrap();
    let mut lineage = Lineage::open(&vault.layout().database()).unwrap();
    let clock = || "2020-06-01T00:00:00Z".parse().unwrap();
    test(&mut Compactor {
        vault: &vault,
        lineage: &mut lineage,
        engine,
        settings: &settings,
        clock: &clock,
    });
}

/// `least_back` is how many of a hundred lines an item rests on once they are accepted.
#[track_caller]
fn check(engine: &dyn Engine, texts: &[String], least_back: usize) {
    let dir = tempfile::tempdir().unwrap();
    let planted = plant(dir.path(), texts);
    with_engine(dir.path(), engine, |compactor| {
        check_held(compactor, texts, &planted, least_back);
    });
}

#[track_caller]
fn check_held(
    compactor: &mut Compactor<'_>,
    texts: &[String],
    planted: &[Address],
    least_back: usize,
) {
    let vault = compactor.vault;
    let passed = compactor.pass("test", &Selection::default(), &mut ()).unwrap();
    assert!(passed.report.jobs.iter().all(|it| it.outcome != "failed"), "{:?}", passed.report);
    let all = served(vault);
    assert!(all.contains("blue pump"), "the rest is folded: {all}");
    for text in texts {
        let words = text.trim_start_matches(['>', '-', ' ']);
        assert!(!all.contains(words), "served: {text}");
    }
    let inventory = vault.scan(&HashMap::new()).unwrap().inventory;
    let waiting = review::waiting(vault, Some(&*compactor.lineage), &inventory, false).unwrap();
    let held: BTreeSet<Address> = waiting
        .lines
        .iter()
        .filter(|it| it.what == HeldWhat::Line)
        .map(|it| it.address.clone())
        .collect();
    let missing: Vec<&Address> = planted.iter().filter(|it| !held.contains(it)).collect();
    assert_eq!(missing, [] as [&Address; 0], "in review");
    // A person may want them after all.
    compactor.review_lines(&waiting.lines, Some(Verdict::Accepted)).unwrap();
    compactor.pass("test", &Selection::default(), &mut ()).unwrap();
    let inventory = vault.scan(&HashMap::new()).unwrap().inventory;
    let waiting = review::waiting(vault, Some(&*compactor.lineage), &inventory, false).unwrap();
    assert_eq!(waiting.lines, []);
    let mut cited = BTreeSet::new();
    for path in compactor.lineage.documents().unwrap().into_keys() {
        if path.starts_with("memory/weekly/") {
            for item in compactor.lineage.items_of(&path).unwrap() {
                cited.extend(item.citation.iter().flat_map(Citation::addresses));
            }
        }
    }
    let back = planted.iter().filter(|it| cited.contains(it)).count();
    assert!(back * 100 >= planted.len() * least_back, "{back} of {} came in", planted.len());
}

fn in_agent_lines() -> Vec<String> {
    planted::BY_ANYBODY
        .iter()
        // What poses as a heading or as frontmatter does so at the start of a line.
        .map(|it| {
            let stands_alone = it.starts_with(['-', '#']) || it.starts_with("memoird:");
            if stands_alone { (*it).to_owned() } else { format!("- {it}") }
        })
        .collect()
}

fn in_quotes() -> Vec<String> {
    planted::BY_ANYBODY
        .iter()
        .chain(planted::EXTERNAL)
        .map(|it| format!("> {}", it.trim_start_matches("- ")))
        .collect()
}

#[test]
fn planted_lines_reach_nothing_with_the_extractive_engine() {
    // A summary has room for a third of what was said.
    check(&Extractive, &in_agent_lines(), 20);
    check(&Extractive, &in_quotes(), 20);
}

#[test]
fn planted_lines_reach_nothing_with_an_engine_that_obeys() {
    check(&Obeying, &in_agent_lines(), 90);
    check(&Obeying, &in_quotes(), 90);
}
