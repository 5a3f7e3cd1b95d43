//! Tests of traces, their formats, and coverage over one small root in memory.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    coverage::{CoverageError, coverage},
    trace::{
        self, SanitizedDocument, Trace, TraceError, TraceSources, TraceUp, split_target, trace_up,
    },
    trace_formats::{TraceGraph, TraceNode},
};
use crate::{
    memory::{
        address::{Address, Stem},
        hash::ContentHash,
        item::Item,
        log::DailyLog,
    },
    privacy::{PrivacyRules, SanitizedLog, sanitize},
    store::db::lineage::{
        Lineage,
        record::{Commit, CoverageRecord, DocumentKind, DocumentRecord, ItemRecord, LogRecord},
    },
};

const WEEK: &str = "memory/weekly/2026-W14.md";
const MONTH: &str = "memory/monthly/2026-04.md";
const TYPED: &str = "memory/feedback_backup.md";
const WISDOM: &str = "WISDOM.md";

/// A root: its files and their recorded lineage.
struct TraceFixture {
    files: BTreeMap<String, String>,
    lineage: Lineage,
    _dir: tempfile::TempDir,
}

impl TraceSources for TraceFixture {
    fn log(&self, stem: &Stem) -> Option<SanitizedLog> {
        let text = self.files.get(&self.path_of(stem))?;
        Some(sanitize(
            &DailyLog::parse(stem.clone(), text.as_bytes()).unwrap(),
            &PrivacyRules::default(),
        ))
    }

    fn document(&self, path: &str) -> Option<SanitizedDocument> {
        let text = self.files.get(path)?.clone();
        Some(SanitizedDocument { hash: ContentHash::of(&text), text })
    }

    fn path_of(&self, stem: &Stem) -> String {
        let folder = if stem.is_week() { "memory/weekly" } else { "memory" };
        format!("{folder}/{stem}.md")
    }

    fn logs_citing_session(&self, _: &Stem) -> Vec<Stem> {
        Vec::new()
    }
}

fn root() -> TraceFixture {
    let dir = tempfile::tempdir().unwrap();
    let lineage = Lineage::open(&dir.path().join("lineage.db")).unwrap();
    let mut root = TraceFixture { files: BTreeMap::new(), lineage, _dir: dir };
    root.put(
        "memory/2026-03-30.md",
        "# Monday\n\n- Importer v2 shipped (#412)\n- It takes 3.2 s per GB\n- Lunch with Ana\n",
    );
    root.put(
        "memory/2026-04-02.md",
        "# Thursday\n\nChose SQLite over Postgres.\nOne file is easier to back up.\n\n\
         | who | what |\n|---|---|\n| Ana | tests |\n\n- importer V2  shipped (#412)\n",
    );
    root.put(
        WEEK,
        "# Week 2026-W14\n\n### Key Outcomes\n- Importer v2 shipped, 3.2 s per GB [2026-03-30:3-4]\n\n\
         ### Decisions\n- SQLite over Postgres [2026-04-02:3]\n\
         - One file is easier\n  to back up [2026-04-02:4]\n- My own words\n",
    );
    root.put(
        MONTH,
        "# 2026-04\n\n### Themes\n- SQLite: one file, easy to back up [2026-04-02:3-4]\n\
         - Importer \"v2\" [2026-03-30:3; 2026-04-02:10]\n",
    );
    root.put(TYPED, "Back up one file.\nEvery night.\n\n**Why:** it is easy.\n");
    root.put(
        WISDOM,
        "# Ana - Wisdom\n\n---\n\n## Tools\n\n**One file**\n\nKeep data in one file.\n\
         <!-- memoird -->\n\n**Mine**\n\nI wrote this.\n",
    );
    root.record();
    root
}

impl TraceFixture {
    fn put(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    fn stems(&self) -> Vec<Stem> {
        let name = |path: &String| path.strip_prefix("memory/")?.strip_suffix(".md")?.parse().ok();
        self.files.keys().filter_map(name).collect()
    }

    fn logs(&self) -> Vec<SanitizedLog> {
        self.stems().iter().filter_map(|stem| self.log(stem)).collect()
    }

    /// Records everything again, as `rebuild` does.
    fn record(&mut self) {
        let logs: Vec<_> =
            self.logs().iter().map(|log| LogRecord::of(log, self.path_of(log.stem()))).collect();
        let documents: Vec<_> = [
            (DocumentKind::Wisdom, WISDOM),
            (DocumentKind::Memory, TYPED),
            (DocumentKind::Monthly, MONTH),
            (DocumentKind::Weekly, WEEK),
        ]
        .into_iter()
        .filter_map(|(kind, path)| {
            let text = self.files.get(path)?;
            let cited = |line, citation: &str| ItemRecord {
                line,
                hash: ContentHash::of(citation).hex8(),
                citation: citation.parse().ok(),
            };
            let items = match kind {
                DocumentKind::Wisdom => vec![cited(7, "2026-04-02:4")],
                DocumentKind::Memory => vec![cited(1, "2026-04-02:4")],
                DocumentKind::Weekly | DocumentKind::Monthly => bullets(text),
            };
            Some(DocumentRecord { path: path.to_owned(), kind, hash: ContentHash::of(text), items })
        })
        .collect();
        self.lineage.replace_all(&documents, &logs, &[]).unwrap();
    }

    fn trace(&self, target: &str) -> Result<Trace, TraceError> {
        let (path, line) = split_target(target);
        trace::trace(path, line, &self.lineage, self)
    }

    #[track_caller]
    fn json(&self, target: &str) -> Value {
        serde_json::to_value(self.trace(target).unwrap()).unwrap()
    }

    fn trace_up(&self, address: &str) -> Result<TraceUp, TraceError> {
        let address: Address = address.parse().unwrap();
        trace_up(&address, &self.lineage, self)
    }

    fn up(&self, address: &str) -> Result<Value, TraceError> {
        self.trace_up(address).map(|it| serde_json::to_value(it).unwrap())
    }
}

/// Returns bullets and their citations, including those on two lines.
fn bullets(text: &str) -> Vec<ItemRecord> {
    let mut items = Vec::new();
    let lines: Vec<_> = text.lines().collect();
    for (number, line) in (1..).zip(&lines) {
        if let Some(words) = line.strip_prefix("- ") {
            let next = lines.get(number).filter(|it| it.starts_with("  "));
            let item = Item::parse(&format!("{words}{}", next.unwrap_or(&"")));
            let line = u32::try_from(number).unwrap();
            items.push(ItemRecord { line, hash: item.hash(), citation: item.citation });
        }
    }
    items
}

#[test]
fn a_week_leads_to_log_lines() {
    assert_eq!(
        root().json(&format!("{WEEK}:4")),
        json!({
            "target": {"path": WEEK, "line": 4, "text": "Importer v2 shipped, 3.2 s per GB"},
            "sources": [{
                "path": "memory/2026-03-30.md",
                "line_start": 3,
                "line_end": 4,
                "text": "- Importer v2 shipped (#412)\n- It takes 3.2 s per GB",
                "origin": "agent",
                "via": [],
                "sources": [],
            }],
        })
    );
}

#[test]
fn a_month_leads_through_the_weeks_that_share_each_line() {
    let via = |line: u32, text: &str| json!([{"path": WEEK, "line": line, "text": text}]);
    let root = root();
    let traced = root.json(&format!("{MONTH}:4"));
    let sources = traced["sources"].as_array().unwrap();
    // Its one range is split where another bullet of the week begins.
    assert_eq!(sources.len(), 2);
    assert_eq!((&sources[0]["line_start"], &sources[0]["line_end"]), (&json!(3), &json!(3)));
    assert_eq!(sources[0]["via"], via(7, "SQLite over Postgres"));
    assert_eq!(sources[1]["text"], "One file is easier to back up.");
    assert_eq!(sources[1]["via"], via(8, "One file is easier to back up"));
    // A line that no week cites is cited by the month itself.
    let traced = root.json(&format!("{MONTH}:5"));
    assert_eq!(traced["sources"][0]["via"], via(4, "Importer v2 shipped, 3.2 s per GB"));
    assert_eq!(traced["sources"][1]["via"], json!([]));
}

#[test]
fn any_line_of_an_item_leads_to_its_sources() {
    #[track_caller]
    fn check(target: &str, line: u32, text: &str, sources: usize) {
        let traced = root().trace(target).unwrap();
        assert_eq!(traced.target.line, Some(line), "{target}");
        assert_eq!(traced.target.text, text, "{target}");
        assert_eq!(traced.sources.len(), sources, "{target}");
    }
    check("memory/weekly/2026-W14.md:9", 8, "One file is easier to back up", 1);
    check("memory/weekly/2026-W14.md:10", 10, "My own words", 0);
    check("memory/feedback_backup.md", 1, "Back up one file. Every night.", 1);
    check("memory/feedback_backup.md:4", 1, "Back up one file. Every night.", 1);
    check("WISDOM.md:7", 7, "One file: Keep data in one file.", 1);
    check("WISDOM.md:10", 7, "One file: Keep data in one file.", 1);
}

#[test]
fn wisdom_leads_through_months_and_weeks_and_typed_memories_do_not() {
    let tiers = |target: &str| {
        let traced = root().trace(target).unwrap();
        traced.sources[0].via.iter().map(|it| it.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tiers("WISDOM.md:7"), [WEEK, MONTH]);
    assert_eq!(tiers(TYPED), [""; 0]);
}

#[test]
fn a_whole_file_is_traced_item_by_item() {
    let traced = root().trace(WEEK).unwrap();
    assert_eq!((traced.target.line, traced.items.len()), (None, 4));
    let all: Vec<_> = traced.sources.iter().map(|it| (it.line_start, it.line_end)).collect();
    assert_eq!(all, [(3, 4), (3, 4)]);
    assert_eq!(traced.items[1], root().trace(&format!("{WEEK}:7")).unwrap());
}

#[test]
fn errors_say_why_there_is_no_trace() {
    #[track_caller]
    fn check(change: impl Fn(&mut TraceFixture), target: &str, expected: &str) {
        let mut root = root();
        change(&mut root);
        let error = root.trace(target).unwrap_err().to_string();
        assert!(error.contains(expected), "{target}: {error}");
    }
    let nothing = |_: &mut TraceFixture| {};
    check(nothing, "memory/weekly/2026-W20.md", "not in the lineage");
    check(nothing, "memory/2026-04-02.md:3", "--up");
    check(nothing, "memory/weekly/2026-W14.md:6", "begins on line 7");
    check(nothing, "memory/weekly/2026-W14.md:11", "no item");
    check(nothing, "memory/feedback_backup.md:40", "no item");
    check(nothing, "WISDOM.md:12", "no item");
    check(nothing, "WISDOM.md:2", "begins on line 7");
    check(|it| it.put(WEEK, "- new"), "memory/weekly/2026-W14.md:4", "was changed");
    // The text of a week is shown with a month, so the week too must match its record.
    check(|it| it.put(WEEK, "- new"), "memory/monthly/2026-04.md:4", "2026-W14.md` was changed");
    check(
        |it| {
            it.files.remove(WEEK);
        },
        "memory/weekly/2026-W14.md:4",
        "not on disk",
    );
}

#[test]
fn a_source_that_is_gone_or_changed_is_marked() {
    let mut root = root();
    let marks = |root: &TraceFixture| {
        let source = root.trace(&format!("{WEEK}:4")).unwrap().sources.remove(0);
        (source.text, source.gone, source.changed)
    };
    root.put("memory/2026-03-30.md", "# Monday\n\n- Importer v2 shipped (#412)\n- It takes 3 s\n");
    let text = "- Importer v2 shipped (#412)\n- It takes 3 s".to_owned();
    assert_eq!(marks(&root), (text, false, true));
    root.put("memory/2026-03-30.md", "# Monday\n\n- Importer v2 shipped (#412)");
    assert_eq!(marks(&root), ("- Importer v2 shipped (#412)".to_owned(), true, false));
    root.files.remove("memory/2026-03-30.md");
    assert_eq!(marks(&root), (String::new(), true, false));
    assert_eq!(root.up("2026-03-30:3").unwrap()["derived"].as_array().unwrap().len(), 2);
}

#[test]
fn a_week_cited_as_a_source_is_followed_and_a_cycle_ends() {
    let mut root = root();
    root.put(MONTH, "- SQLite [2026-W14:7]\n");
    root.record();
    let traced = root.trace(&format!("{MONTH}:1")).unwrap();
    assert_eq!(traced.sources[0].path, WEEK);
    assert_eq!(traced.sources[0].sources[0].text, "Chose SQLite over Postgres.");
    root.put(WEEK, "- Round [2026-W14:1]\n");
    root.record();
    root.trace(&format!("{WEEK}:1")).unwrap();
}

#[test]
fn a_log_line_leads_up_to_all_its_items() {
    let root = root();
    let up = root.up("2026-04-02:4").unwrap();
    let text = "One file is easier to back up.";
    assert_eq!(up["target"], json!({"path": "memory/2026-04-02.md", "line": 4, "text": text}));
    let derived: Vec<_> = up["derived"].as_array().unwrap().iter().collect();
    let tiers: Vec<_> = derived.iter().map(|it| it["tier"].as_str().unwrap()).collect();
    assert_eq!(tiers, ["weekly", "monthly", "memory", "wisdom"]);
    assert_eq!(
        derived[1],
        &json!({"tier": "monthly", "path": MONTH, "line": 4, "text": "SQLite: one file, easy to back up"})
    );
    assert_eq!(root.up("2026-03-30:5").unwrap()["derived"], json!([]));
    assert!(matches!(root.up("2026-03-30:50"), Err(TraceError::NoLine { line: 50, .. })));
    assert!(matches!(root.up("2026-03-29:1"), Err(TraceError::NoLine { .. })));
}

#[test]
fn traces_are_the_same_after_a_rebuild() {
    let mut root = root();
    let all = |root: &TraceFixture| {
        let of = |path: &&str| serde_json::to_string_pretty(&root.trace(path).unwrap()).unwrap();
        [WEEK, MONTH, TYPED, WISDOM].iter().map(of).collect::<Vec<_>>()
    };
    let before = all(&root);
    root.record();
    assert_eq!(all(&root), before);
    let dir = tempfile::tempdir().unwrap();
    root.lineage = Lineage::open(&dir.path().join("lineage.db")).unwrap();
    root.record();
    assert_eq!(all(&root), before);
}

#[test]
fn targets_end_in_a_line_or_not() {
    assert_eq!(split_target("a/b.md:12"), ("a/b.md", Some(12)));
    assert_eq!(split_target("a/b.md"), ("a/b.md", None));
    assert_eq!(split_target("a:b.md"), ("a:b.md", None));
    assert_eq!(split_target("b.md:0"), ("b.md:0", None));
    assert_eq!(split_target("b.md:+1"), ("b.md:+1", None));
}

#[test]
fn a_trace_reads_as_a_tree() {
    let mut root = root();
    let tree = TraceNode::from_trace(&root.trace(&format!("{MONTH}:5")).unwrap()).to_string();
    assert_eq!(
        tree,
        "memory/monthly/2026-04.md:5  Importer \"v2\"\n\
         ├─ memory/weekly/2026-W14.md:4  Importer v2 shipped, 3.2 s per GB\n\
         │  └─ memory/2026-03-30.md:3  - Importer v2 shipped (#412)\n\
         └─ memory/2026-04-02.md:10  - importer V2  shipped (#412)\n"
    );
    root.files.remove("memory/2026-03-30.md");
    let tree = TraceNode::from_trace(&root.trace(&format!("{WEEK}:4")).unwrap()).to_string();
    assert!(tree.ends_with("└─ memory/2026-03-30.md:3-4  (source gone)\n"), "{tree}");
    let whole = TraceNode::from_trace(&root.trace(WEEK).unwrap());
    assert_eq!((whole.place.as_str(), whole.children.len()), (WEEK, 4));
}

#[test]
fn a_log_line_reads_as_a_tree_and_a_graph() {
    let up = root().trace_up("2026-04-02:3").unwrap();
    assert_eq!(
        TraceNode::from_trace_up(&up).to_string(),
        "memory/2026-04-02.md:3  Chose SQLite over Postgres.\n\
         ├─ memory/weekly/2026-W14.md:7  SQLite over Postgres\n\
         └─ memory/monthly/2026-04.md:4  SQLite: one file, easy to back up\n"
    );
    let graph = TraceGraph::from_trace_up(&up);
    assert!(
        graph.to_dot().contains("\"memory/monthly/2026-04.md:4\" -> \"memory/2026-04-02.md:3\";")
    );
    assert_eq!(graph.to_prov()["wasDerivedFrom"].as_object().unwrap().len(), 2);
}

#[test]
fn drawings_hold_whatever_a_log_says() {
    let mut root = root();
    root.put(WEEK, "- A \"b\\\" \u{1b}[2Jc [2026-04-02:3]\n");
    root.record();
    let traced = root.trace(&format!("{WEEK}:1")).unwrap();
    assert_eq!(
        TraceGraph::from_trace(&traced).to_dot(),
        "digraph trace {\n  rankdir=LR;\n  node [shape=box];\n  \
         \"memory/2026-04-02.md:3\" [label=\"memory/2026-04-02.md:3\\nChose SQLite over Postgres.\", style=rounded];\n  \
         \"memory/weekly/2026-W14.md:1\" [label=\"memory/weekly/2026-W14.md:1\\nA \\\"b\\\\\\\"  [2Jc\"];\n  \
         \"memory/weekly/2026-W14.md:1\" -> \"memory/2026-04-02.md:3\";\n}\n"
    );
}

#[test]
fn prov_names_entities_and_derivations() {
    let prov = TraceGraph::from_trace(&root().trace(&format!("{MONTH}:5")).unwrap()).to_prov();
    let entity = |name: &str| prov["entity"][name].clone();
    assert_eq!(
        entity("root:memory/monthly/2026-04.md%3A5"),
        json!({
            "prov:type": {"$": "memoird:Item", "type": "prov:QUALIFIED_NAME"},
            "prov:location": "memory/monthly/2026-04.md:5",
            "prov:label": "Importer \"v2\"",
        })
    );
    assert_eq!(prov["entity"].as_object().unwrap().len(), 4);
    let derived = prov["wasDerivedFrom"].as_object().unwrap();
    let ends: Vec<_> = derived
        .values()
        .map(|it| {
            let end = |key: &str| it[key].as_str().unwrap().to_owned();
            format!("{} {}", end("prov:generatedEntity"), end("prov:usedEntity"))
        })
        .collect();
    assert_eq!(
        ends,
        [
            "root:memory/monthly/2026-04.md%3A5 root:memory/2026-04-02.md%3A10",
            "root:memory/monthly/2026-04.md%3A5 root:memory/weekly/2026-W14.md%3A4",
            "root:memory/weekly/2026-W14.md%3A4 root:memory/2026-03-30.md%3A3",
        ]
    );
    assert_eq!(prov.get("hadMember"), None);
    let whole = TraceGraph::from_trace(&root().trace(WEEK).unwrap()).to_prov();
    assert_eq!(whole["hadMember"].as_object().unwrap().len(), 4);
}

#[test]
fn coverage_names_each_line_and_why() {
    let mut root = root();
    let week = |root: &TraceFixture| {
        let actual = coverage("2026-W14".parse().unwrap(), WEEK, &root.logs(), &root.lineage, root);
        serde_json::to_value(actual.unwrap()).unwrap()
    };
    let left = |path: &str, line: u32, text: &str, reason: &str| {
        let path = format!("memory/{path}.md");
        json!({"path": path, "line": line, "text": text, "reason": reason})
    };
    let mut expected = json!({
        "period": "2026-W14",
        "lines": 10,
        "covered": 4,
        "uncovered": [
            left("2026-03-30", 1, "# Monday", "structure"),
            left("2026-03-30", 5, "- Lunch with Ana", "over budget"),
            left("2026-04-02", 1, "# Thursday", "structure"),
            left("2026-04-02", 6, "| who | what |", "structure"),
            left("2026-04-02", 8, "| Ana | tests |", "over budget"),
            left("2026-04-02", 10, "- importer V2  shipped (#412)", "repeat"),
        ],
    });
    assert_eq!(week(&root), expected);
    // What the job said wins over what the line looks like.
    let lunch: Address = "2026-03-30:5".parse().unwrap();
    let coverage = [CoverageRecord { path: WEEK.to_owned(), lines: vec![(lunch, "deleted")] }];
    root.lineage.commit(&Commit { coverage: &coverage, ..Commit::default() }).unwrap();
    expected["uncovered"][1]["reason"] = json!("deleted");
    assert_eq!(week(&root), expected);
}

#[test]
fn a_period_without_a_file_has_no_coverage() {
    let root = root();
    let path = "memory/weekly/2026-W15.md";
    let result = coverage("2026-W15".parse().unwrap(), path, &[], &root.lineage, &root);
    assert!(matches!(result, Err(CoverageError::NotSummarized { .. })), "{result:?}");
}
