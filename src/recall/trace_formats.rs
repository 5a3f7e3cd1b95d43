//! Output formats of a trace or a coverage: a tree to read, a Graphviz graph, and PROV-JSON to exchange.
//!
//! Pure functions of a [`Trace`] or a [`Coverage`], and of how items were generated ([`GenerationRecords`]).
//! Text from logs may contain anything, so control characters are replaced by spaces and cannot break a
//! format.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::{
    coverage::Coverage,
    trace::{SourceRange, Trace, TraceUp, TracedItem},
};

/// How items were generated, by their places: `memory/weekly/2026-W14.md:7`.
pub type GenerationRecords = BTreeMap<String, GenerationRecord>;

/// How an item was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationRecord {
    /// The run.
    pub run: i64,
    /// The trigger of the run.
    pub trigger: String,
    /// The job that wrote the item; `None` when a person had it written.
    pub job: Option<GenerationJob>,
    /// When the item was written.
    pub at: DateTime<Utc>,
}

/// The job that wrote an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationJob {
    /// Its tier.
    pub tier: &'static str,
    /// Its period.
    pub period: String,
    /// Name and version of the engine.
    pub engine: String,
    /// When it began.
    pub started: DateTime<Utc>,
    /// When it ended.
    pub ended: Option<DateTime<Utc>>,
}

impl GenerationRecord {
    /// Returns the name of the activity: that of the job, else of the run.
    fn activity_name(&self) -> String {
        match &self.job {
            Some(it) => format!("run {} {} {}", self.run, it.tier, it.period),
            None => format!("run {}", self.run),
        }
    }

    fn description(&self) -> String {
        let engine = self.job.as_ref().map_or("a person", |it| &it.engine);
        format!(
            "{} ({}) by {engine}, {}",
            self.activity_name(),
            one_line(&self.trigger),
            format_time(self.at)
        )
    }
}

fn format_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A node of a trace tree, read from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Its place: `memory/2026-04-02.md:9-11`.
    pub place: String,
    /// Its text, lines joined by a space.
    pub text: String,
    /// A note: for a source, that it is gone or has changed; for an item, when and by what it was
    /// generated.
    pub note: Option<String>,
    /// Its sources.
    pub children: Vec<TraceNode>,
}

impl TraceNode {
    /// Returns the tree of a trace: the target, the items between, the log lines. A log line appears
    /// under each item that leads to it.
    pub fn from_trace(trace: &Trace) -> Self {
        let children = if trace.items.is_empty() {
            source_nodes(&trace.sources)
        } else {
            trace.items.iter().map(Self::from_trace).collect()
        };
        Self { children, ..Self::leaf(&trace.target) }
    }

    /// Returns the tree of a log line, with all items derived from it.
    pub fn from_trace_up(trace: &TraceUp) -> Self {
        let children = trace.derived.iter().map(|it| Self::leaf(&it.place)).collect();
        Self { children, ..Self::leaf(&trace.target) }
    }

    /// Adds when the items were generated, by which run and engine. `day` formats a day.
    #[must_use]
    pub fn with_generations(
        mut self,
        makers: &GenerationRecords,
        day: &dyn Fn(DateTime<Utc>) -> String,
    ) -> Self {
        if let (None, Some(maker)) = (&self.note, makers.get(&self.place)) {
            let by = match &maker.job {
                Some(job) => &job.engine[..],
                // `undo` wrote it as an earlier run had.
                None if maker.trigger == "undo" => "restored",
                // With the words, the versions that had them are gone, and with these who wrote the others.
                None if maker.trigger == "forget" => "older versions forgotten",
                None => "yours",
            };
            self.note = Some(format!("{}, run {}, {by}", day(maker.at), maker.run));
        }
        self.children =
            self.children.into_iter().map(|it| it.with_generations(makers, day)).collect();
        self
    }

    /// Returns the tree for a screen of `columns` columns. Text that does not fit beside its place is
    /// wrapped below it.
    pub fn rows(&self, columns: usize) -> Vec<TreeRow> {
        let mut rows = Vec::new();
        self.add_rows(columns, ["", ""], &mut rows);
        rows
    }

    fn add_rows(&self, columns: usize, [first, rest]: [&str; 2], rows: &mut Vec<TreeRow>) {
        let width = |it: &str| it.chars().count();
        let note = self.note.as_ref().map_or(String::new(), |it| format!("({it})"));
        let gap = |it: &str| if it.is_empty() { 0 } else { width(it) + 2 };
        let fits = width(first) + width(&self.place) + gap(&self.text) + gap(&note) <= columns;
        let text = if fits { self.text.clone() } else { String::new() };
        rows.push(TreeRow { lead: first.to_owned(), place: self.place.clone(), text, note });
        if !fits {
            let lead = format!("{rest}{}  ", if self.children.is_empty() { " " } else { "│" });
            let room = columns.saturating_sub(width(&lead)).max(20);
            for text in wrap_text(&self.text, room) {
                let (lead, place, note) = (lead.clone(), String::new(), String::new());
                rows.push(TreeRow { lead, place, text, note });
            }
        }
        for (at, child) in self.children.iter().enumerate() {
            let ends = at + 1 == self.children.len();
            let [corner, line] = if ends { ["└─ ", "   "] } else { ["├─ ", "│  "] };
            let (first, rest) = (format!("{rest}{corner}"), format!("{rest}{line}"));
            child.add_rows(columns, [&first, &rest], rows);
        }
    }

    fn leaf(place: &TracedItem) -> Self {
        let (text, children) = (one_line(&place.text), Vec::new());
        Self { place: item_label(place), text, note: None, children }
    }
}

/// A row of a tree on a screen. Empty parts take no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// The lines of the tree.
    pub lead: String,
    /// The place.
    pub place: String,
    /// The text.
    pub text: String,
    /// The note, in parentheses.
    pub note: String,
}

/// Wraps a text into lines of `room` characters, at spaces if possible.
fn wrap_text(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |it| it.chars().count());
        let letters: Vec<char> = word.chars().collect();
        if line > 0 && line + 1 + letters.len() > room {
            lines.push(String::new());
        }
        for (at, piece) in letters.chunks(room).enumerate() {
            let Some(last) = lines.last_mut() else { continue };
            if at > 0 {
                lines.push(piece.iter().collect());
            } else {
                last.push_str(if last.is_empty() { "" } else { " " });
                last.extend(piece);
            }
        }
    }
    lines.retain(|it| !it.is_empty());
    lines
}

/// Groups sources under the items that lead to them, in the order of their first line.
fn source_nodes(sources: &[SourceRange]) -> Vec<TraceNode> {
    let mut branches = Vec::<TraceNode>::new();
    for source in sources {
        let leaf = TraceNode {
            place: range_label(source),
            text: one_line(&source.text),
            note: source_note(source).map(str::to_owned),
            children: source_nodes(&source.sources),
        };
        for via in &source.via {
            let place = item_label(via);
            match branches.iter_mut().find(|it| it.place == place) {
                Some(branch) => branch.children.push(leaf.clone()),
                None => {
                    branches
                        .push(TraceNode { children: vec![leaf.clone()], ..TraceNode::leaf(via) });
                }
            }
        }
        if source.via.is_empty() {
            branches.push(leaf);
        }
    }
    branches
}

impl fmt::Display for TraceNode {
    /// Prints the tree with its lines, one node per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for TreeRow { lead, place, text, note } in self.rows(usize::MAX) {
            write!(f, "{lead}{place}")?;
            for part in [text, note].iter().filter(|it| !it.is_empty()) {
                write!(f, "  {part}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The items and log lines of a trace, each once, and their derivations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceGraph {
    nodes: BTreeMap<String, GraphNode>,
    /// From an item to its sources.
    derivations: BTreeSet<(String, String)>,
    /// From a file to its items.
    members: BTreeSet<(String, String)>,
    /// By item, or by file if the file represents its items.
    generations: GenerationRecords,
    /// Why a log line reached no item.
    left_out: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GraphNode {
    text: String,
    kind: NodeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    File,
    Item,
    LogLines,
}

impl TraceGraph {
    /// Returns the graph of a trace down to log lines.
    pub fn from_trace(trace: &Trace) -> Self {
        let mut graph = Self::default();
        graph.add(trace);
        graph
    }

    /// Returns the graph of a log line and all items derived from it.
    pub fn from_trace_up(trace: &TraceUp) -> Self {
        let mut graph = Self::default();
        let source = graph.add_place(&trace.target, NodeKind::LogLines);
        for item in &trace.derived {
            let item = graph.add_place(&item.place, NodeKind::Item);
            graph.derivations.insert((item, source.clone()));
        }
        graph
    }

    /// Returns the graph of the file at `path`, its logs, and their lines that reached none of its
    /// items.
    pub fn from_coverage(path: &str, coverage: &Coverage) -> Self {
        let mut graph = Self::default();
        let file = graph.add_node(one_line(path), "", NodeKind::File);
        for it in &coverage.uncovered {
            let log = graph.add_node(one_line(&it.path), "", NodeKind::File);
            let line = format!("{log}:{}", it.line);
            let line = graph.add_node(line, &it.text, NodeKind::LogLines);
            graph.left_out.insert(line.clone(), one_line(&it.reason));
            graph.members.insert((log.clone(), line));
            graph.derivations.insert((file.clone(), log));
        }
        graph
    }

    /// Adds how the items and files among the nodes were generated.
    #[must_use]
    pub fn with_generations(mut self, makers: GenerationRecords) -> Self {
        self.generations = makers;
        let is_made = |it: &GraphNode| it.kind != NodeKind::LogLines;
        self.generations.retain(|id, _| self.nodes.get(id).is_some_and(is_made));
        self
    }

    /// Returns the graph in the Graphviz language. Arrows lead from an item to its sources, dashed ones
    /// to the job that wrote it.
    pub fn to_dot(&self) -> String {
        let mut lines = vec!["digraph trace {\n  rankdir=LR;\n  node [shape=box];".to_owned()];
        for (id, node) in &self.nodes {
            let style = if node.kind == NodeKind::LogLines { ", style=rounded" } else { "" };
            let words = if node.text.is_empty() { "" } else { "\n" };
            let reason = self.left_out.get(id).map(|it| format!("\n({it})")).unwrap_or_default();
            let label = dot_string(&format!("{id}{words}{}{reason}", node.text));
            lines.push(format!("  {} [label={label}{style}];", dot_string(id)));
        }
        for (from, to) in self.members.iter().chain(&self.derivations) {
            lines.push(format!("  {} -> {};", dot_string(from), dot_string(to)));
        }
        let activities: BTreeMap<String, &GenerationRecord> =
            self.generations.values().map(|it| (it.activity_name(), it)).collect();
        for (name, maker) in activities {
            let label = dot_string(&maker.description());
            lines.push(format!("  {} [label={label}, shape=ellipse];", dot_string(&name)));
        }
        for (item, maker) in &self.generations {
            let (item, maker) = (dot_string(item), dot_string(&maker.activity_name()));
            lines.push(format!("  {item} -> {maker} [style=dashed];"));
        }
        lines.push("}\n".to_owned());
        lines.join("\n")
    }

    /// Returns the graph as PROV-JSON, as its W3C member submission describes it.
    ///
    /// Items and ranges of log lines are entities; a log line that reached no item has a reason. A file that
    /// was traced as a whole is a collection. The jobs that wrote items are activities, which used the items'
    /// sources and were carried out by an engine, or for a person.
    pub fn to_prov(&self) -> Value {
        let entities: Map<_, _> = self
            .nodes
            .iter()
            .map(|(id, node)| {
                let kind = match node.kind {
                    NodeKind::File => "prov:Collection",
                    NodeKind::Item => "memoird:Item",
                    NodeKind::LogLines => "memoird:LogLines",
                };
                let kind = json!({"$": kind, "type": "prov:QUALIFIED_NAME"});
                let mut entity = json!({"prov:type": kind, "prov:location": id});
                if !node.text.is_empty() {
                    entity["prov:label"] = json!(node.text);
                }
                if let Some(reason) = self.left_out.get(id) {
                    entity["memoird:leftOut"] = json!(reason);
                }
                (qualified_name(id), entity)
            })
            .collect();
        let mut document = json!({
            "prefix": {"root": "urn:memoird:root:", "memoird": "urn:memoird:vocabulary:"},
            "entity": entities,
        });
        self.add_activities(&mut document);
        for (name, letter, pairs, [from, to]) in [
            ("wasDerivedFrom", 'd', &self.derivations, ["prov:generatedEntity", "prov:usedEntity"]),
            ("hadMember", 'm', &self.members, ["prov:collection", "prov:entity"]),
        ] {
            let numbered = pairs.iter().zip(1..).map(|(ends, number)| {
                let ends = json!({from: qualified_name(&ends.0), to: qualified_name(&ends.1)});
                (format!("_:{letter}{number}"), ends)
            });
            if !pairs.is_empty() {
                document[name] = Value::Object(numbered.collect());
            }
        }
        document
    }

    fn add_activities(&self, document: &mut Value) {
        let mut activities = Map::new();
        let mut agents = Map::new();
        let (mut generated, mut used) = (Map::new(), Map::new());
        let mut associated = BTreeSet::new();
        let mut usages = BTreeSet::new();
        for ((item, maker), number) in self.generations.iter().zip(1..) {
            let id = qualified_name(&maker.activity_name());
            let mut activity = json!({
                "prov:label": maker.description(),
                "memoird:run": maker.run,
                "memoird:trigger": one_line(&maker.trigger),
            });
            let at = format_time(maker.at);
            let (started, ended) = match &maker.job {
                Some(job) => {
                    activity["memoird:tier"] = json!(job.tier);
                    activity["memoird:period"] = json!(job.period);
                    (format_time(job.started), job.ended.map_or_else(|| at.clone(), format_time))
                }
                None => (at.clone(), at.clone()),
            };
            activity["prov:startTime"] = json!(started);
            activity["prov:endTime"] = json!(ended);
            activities.insert(id.clone(), activity);
            let (agent, kind, label) = match &maker.job {
                Some(job) => {
                    let name = qualified_name(&format!("engine/{}", job.engine));
                    (name.replacen("root:", "memoird:", 1), "prov:SoftwareAgent", &job.engine[..])
                }
                None => ("root:person".to_owned(), "prov:Person", "a person"),
            };
            let kind = json!({"$": kind, "type": "prov:QUALIFIED_NAME"});
            agents.insert(agent.clone(), json!({"prov:type": kind, "prov:label": label}));
            associated.insert((id.clone(), agent));
            let generation = json!({
                "prov:entity": qualified_name(item), "prov:activity": id.clone(), "prov:time": at,
            });
            generated.insert(format!("_:g{number}"), generation);
            let sources = self.derivations.iter().filter(|(from, _)| from == item);
            usages.extend(sources.map(|(_, source)| (id.clone(), qualified_name(source))));
        }
        for ((activity, source), number) in usages.into_iter().zip(1..) {
            let usage = json!({"prov:activity": activity, "prov:entity": source});
            used.insert(format!("_:u{number}"), usage);
        }
        let associated: Map<_, _> = associated
            .into_iter()
            .zip(1..)
            .map(|((activity, agent), number)| {
                let association = json!({"prov:activity": activity, "prov:agent": agent});
                (format!("_:a{number}"), association)
            })
            .collect();
        for (name, records) in [
            ("activity", activities),
            ("agent", agents),
            ("wasGeneratedBy", generated),
            ("used", used),
            ("wasAssociatedWith", associated),
        ] {
            if !records.is_empty() {
                document[name] = Value::Object(records);
            }
        }
    }

    fn add(&mut self, trace: &Trace) {
        let is_file = trace.target.line.is_none();
        let kind = if is_file { NodeKind::File } else { NodeKind::Item };
        let target = self.add_place(&trace.target, kind);
        // The sources of the whole file are those of its items.
        if trace.items.is_empty() {
            self.add_sources(&target, &trace.sources);
        }
        for item in &trace.items {
            self.add(item);
            self.members.insert((target.clone(), item_label(&item.target)));
        }
    }

    fn add_sources(&mut self, target: &str, sources: &[SourceRange]) {
        for source in sources {
            let id = self.add_node(range_label(source), &source.text, NodeKind::LogLines);
            for via in &source.via {
                let via = self.add_place(via, NodeKind::Item);
                self.derivations.insert((target.to_owned(), via.clone()));
                self.derivations.insert((via, id.clone()));
            }
            if source.via.is_empty() {
                self.derivations.insert((target.to_owned(), id.clone()));
            }
            self.add_sources(&id, &source.sources);
        }
    }

    fn add_place(&mut self, place: &TracedItem, kind: NodeKind) -> String {
        self.add_node(item_label(place), &place.text, kind)
    }

    fn add_node(&mut self, id: String, text: &str, kind: NodeKind) -> String {
        self.nodes.entry(id.clone()).or_insert_with(|| GraphNode { text: one_line(text), kind });
        id
    }
}

fn item_label(place: &TracedItem) -> String {
    match place.line {
        Some(line) => format!("{}:{line}", one_line(&place.path)),
        None => one_line(&place.path),
    }
}

fn range_label(source: &SourceRange) -> String {
    let path = one_line(&source.path);
    match (source.line_start, source.line_end) {
        (start, end) if start == end => format!("{path}:{start}"),
        (start, end) => format!("{path}:{start}-{end}"),
    }
}

fn source_note(source: &SourceRange) -> Option<&'static str> {
    match source {
        SourceRange { gone: true, .. } => Some("source gone"),
        SourceRange { changed: true, .. } => Some("source changed since"),
        _ => None,
    }
}

/// Joins lines by a space and replaces control characters.
fn one_line(text: &str) -> String {
    text.lines()
        .map(|line| line.trim().replace(char::is_control, " "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a string for Graphviz.
fn dot_string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Encodes a place as a qualified name, which allows few characters.
fn qualified_name(id: &str) -> String {
    let mut name = "root:".to_owned();
    for c in id.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/') {
            name.push(c);
        } else {
            let bytes = c.to_string().into_bytes();
            name.extend(bytes.into_iter().map(|byte| format!("%{byte:02X}")));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(place: &str, text: &str, children: Vec<TraceNode>) -> TraceNode {
        TraceNode { place: place.to_owned(), text: text.to_owned(), note: None, children }
    }

    #[test]
    fn a_screen_shows_the_whole_tree_within_its_columns() {
        let long = "one two three four five six seven eight nine ten";
        let tree = branch(
            "w:1",
            long,
            vec![
                branch("a:2", long, vec![branch("x:9", "short", vec![])]),
                branch("b:3", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", vec![]),
            ],
        );
        let shown: Vec<String> = tree
            .rows(30)
            .iter()
            .map(|it| [&it.lead[..], &it.place, &it.text].concat().trim_end().to_owned())
            .collect();
        assert_eq!(
            shown,
            [
                "w:1",
                "│  one two three four five six",
                "│  seven eight nine ten",
                "├─ a:2",
                "│  │  one two three four five",
                "│  │  six seven eight nine ten",
                "│  └─ x:9short",
                "└─ b:3",
                "      aaaaaaaaaaaaaaaaaaaaaaaa",
                "      aaaaaaaaaaaaaaa",
            ]
        );
        assert!(tree.rows(200).iter().all(|it| !it.place.is_empty()));
    }
}
