//! A trace in other forms: a tree to read, a drawing for Graphviz, and PROV-JSON to exchange.
//!
//! Pure functions of a [`Trace`]. Words from logs may hold anything; what is control is replaced by
//! a space here, so that no form can be broken out of.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
};

use serde_json::{Map, Value, json};

use super::trace::{Place, Source, Trace, TraceUp};

/// A node of a trace to be read from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where: `memory/2026-04-02.md:9-11`.
    pub place: String,
    /// The words, lines joined by a space.
    pub text: String,
    /// What is to be said of the source: that it is gone, or reads otherwise today.
    pub note: Option<&'static str>,
    /// What it rests on.
    pub children: Vec<Branch>,
}

/// Returns the tree of a trace: the target, the items between, the log lines.
///
/// Log lines stand under the item of the nearest tier that leads to them, and under each of several.
pub fn tree(trace: &Trace) -> Branch {
    let children = if trace.items.is_empty() {
        under(&trace.sources)
    } else {
        trace.items.iter().map(tree).collect()
    };
    Branch {
        place: place_name(&trace.target),
        text: one_line(&trace.target.text),
        note: None,
        children,
    }
}

/// Returns the tree of what came of a log line: the line, and the items that rest on it.
pub fn tree_up(up: &TraceUp) -> Branch {
    let branch = |place: &Place, children| Branch {
        place: place_name(place),
        text: one_line(&place.text),
        note: None,
        children,
    };
    branch(&up.target, up.derived.iter().map(|it| branch(&it.place, Vec::new())).collect())
}

/// Groups sources under the items that lead to them, in the order of their first line.
fn under(sources: &[Source]) -> Vec<Branch> {
    let mut branches = Vec::<Branch>::new();
    for source in sources {
        let leaf = Branch {
            place: source_name(source),
            text: one_line(&source.text),
            note: note(source),
            children: under(&source.sources),
        };
        for via in &source.via {
            let place = place_name(via);
            match branches.iter_mut().find(|it| it.place == place) {
                Some(branch) => branch.children.push(leaf.clone()),
                None => branches.push(Branch {
                    place,
                    text: one_line(&via.text),
                    note: None,
                    children: vec![leaf.clone()],
                }),
            }
        }
        if source.via.is_empty() {
            branches.push(leaf);
        }
    }
    branches
}

impl fmt::Display for Branch {
    /// Prints the tree with its lines drawn, one node a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f)?;
        self.print_children(f, "")
    }
}

impl Branch {
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if !self.text.is_empty() {
            write!(f, "  {}", self.text)?;
        }
        match self.note {
            Some(note) => writeln!(f, "  ({note})"),
            None => writeln!(f),
        }
    }

    fn print_children(&self, f: &mut fmt::Formatter<'_>, lead: &str) -> fmt::Result {
        for (at, child) in self.children.iter().enumerate() {
            let last = at + 1 == self.children.len();
            f.write_str(lead)?;
            f.write_str(if last { "└─ " } else { "├─ " })?;
            child.print(f)?;
            child.print_children(f, &format!("{lead}{}", if last { "   " } else { "│  " }))?;
        }
        Ok(())
    }
}

/// Returns the trace as a Graphviz digraph whose arrows lead from an item to its sources.
pub fn dot(trace: &Trace) -> String {
    let graph = Graph::of(trace);
    let mut text = "digraph trace {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (id, node) in &graph.nodes {
        let style = if node.is_log { ", style=rounded" } else { "" };
        let label = if node.text.is_empty() { id } else { &format!("{id}\n{}", node.text) };
        // Writing to a string cannot fail.
        let _ok = writeln!(text, "  {} [label={}{style}];", quoted(id), quoted(label));
    }
    for (from, to) in graph.derived.iter().chain(&graph.members) {
        let _ok = writeln!(text, "  {} -> {};", quoted(from), quoted(to));
    }
    text.push_str("}\n");
    text
}

/// Returns the trace as PROV-JSON, as its W3C member submission describes it.
///
/// Items and ranges of log lines are entities; a file that was traced as a whole is a collection.
pub fn prov(trace: &Trace) -> Value {
    let graph = Graph::of(trace);
    let mut entities = Map::new();
    for (id, node) in &graph.nodes {
        let kind = if node.is_log {
            "memoird:LogLines"
        } else if node.is_file {
            "prov:Collection"
        } else {
            "memoird:Item"
        };
        let mut entity = Map::new();
        entity.insert("prov:type".to_owned(), json!({"$": kind, "type": "prov:QUALIFIED_NAME"}));
        entity.insert("prov:location".to_owned(), json!(id));
        if !node.text.is_empty() {
            entity.insert("prov:label".to_owned(), json!(node.text));
        }
        entities.insert(qualified(id), Value::Object(entity));
    }
    let relations = |pairs: &BTreeSet<(String, String)>, letter: char, keys: [&str; 2]| {
        let numbered = pairs.iter().zip(1..).map(|((from, to), number)| {
            let ends = json!({keys[0]: qualified(from), keys[1]: qualified(to)});
            (format!("_:{letter}{number}"), ends)
        });
        Value::Object(numbered.collect())
    };
    let mut document = json!({
        "prefix": {"root": "urn:memoird:root:", "memoird": "urn:memoird:vocabulary:"},
        "entity": entities,
    });
    let derived = relations(&graph.derived, 'd', ["prov:generatedEntity", "prov:usedEntity"]);
    let members = relations(&graph.members, 'm', ["prov:collection", "prov:entity"]);
    for (name, relation) in [("wasDerivedFrom", derived), ("hadMember", members)] {
        if relation.as_object().is_some_and(|it| !it.is_empty()) {
            document[name] = relation;
        }
    }
    document
}

/// The nodes of a trace and the arrows between them, each once.
#[derive(Default)]
struct Graph {
    nodes: BTreeMap<String, Node>,
    derived: BTreeSet<(String, String)>,
    members: BTreeSet<(String, String)>,
}

struct Node {
    text: String,
    is_log: bool,
    is_file: bool,
}

impl Graph {
    fn of(trace: &Trace) -> Self {
        let mut graph = Self::default();
        graph.add(trace);
        graph
    }

    fn add(&mut self, trace: &Trace) {
        let target = self.add_place(&trace.target);
        // What the whole file rests on is what its items rest on.
        if trace.items.is_empty() {
            self.add_sources(&target, &trace.sources);
        }
        for item in &trace.items {
            self.add(item);
            self.members.insert((target.clone(), place_name(&item.target)));
        }
    }

    fn add_place(&mut self, place: &Place) -> String {
        let id = place_name(place);
        let (text, is_file) = (one_line(&place.text), place.line.is_none());
        self.nodes.entry(id.clone()).or_insert(Node { text, is_log: false, is_file });
        id
    }

    fn add_sources(&mut self, target: &str, sources: &[Source]) {
        for source in sources {
            let id = source_name(source);
            let text = one_line(&source.text);
            self.nodes.entry(id.clone()).or_insert(Node { text, is_log: true, is_file: false });
            for via in &source.via {
                let via = self.add_place(via);
                self.derived.insert((target.to_owned(), via.clone()));
                self.derived.insert((via, id.clone()));
            }
            if source.via.is_empty() {
                self.derived.insert((target.to_owned(), id.clone()));
            }
            self.add_sources(&id, &source.sources);
        }
    }
}

fn place_name(place: &Place) -> String {
    match place.line {
        Some(line) => format!("{}:{line}", one_line(&place.path)),
        None => one_line(&place.path),
    }
}

fn source_name(source: &Source) -> String {
    let path = one_line(&source.path);
    match (source.line_start, source.line_end) {
        (start, end) if start == end => format!("{path}:{start}"),
        (start, end) => format!("{path}:{start}-{end}"),
    }
}

fn note(source: &Source) -> Option<&'static str> {
    match source {
        Source { gone: true, .. } => Some("source gone"),
        Source { changed: true, .. } => Some("source changed since"),
        _ => None,
    }
}

/// Joins lines by a space and replaces what is control.
fn one_line(text: &str) -> String {
    text.lines()
        .map(|line| line.trim().replace(char::is_control, " "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a string for Graphviz.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Spells a place as a qualified name, in which few characters may stand.
fn qualified(id: &str) -> String {
    let mut name = "root:".to_owned();
    for c in id.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/') {
            name.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ok = write!(name, "%{byte:02X}");
            }
        }
    }
    name
}
