//! A trace in other forms: a tree to read, a drawing for Graphviz, and PROV-JSON to exchange.
//!
//! Pure functions of a [`Trace`]. Words from logs may hold anything; what is control is replaced by
//! a space here, so that no form can be broken out of.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
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

impl Branch {
    /// Returns the tree of a trace: the target, the items between, the log lines.
    ///
    /// Log lines stand under each item that leads to them.
    pub fn down(trace: &Trace) -> Self {
        let children = if trace.items.is_empty() {
            under(&trace.sources)
        } else {
            trace.items.iter().map(Self::down).collect()
        };
        Self { children, ..Self::leaf(&trace.target) }
    }

    /// Returns the tree of a log line: under it, all items that rest on it.
    pub fn up(trace: &TraceUp) -> Self {
        let children = trace.derived.iter().map(|it| Self::leaf(&it.place)).collect();
        Self { children, ..Self::leaf(&trace.target) }
    }

    fn leaf(place: &Place) -> Self {
        let (text, children) = (one_line(&place.text), Vec::new());
        Self { place: place_name(place), text, note: None, children }
    }
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
                None => {
                    branches.push(Branch { children: vec![leaf.clone()], ..Branch::leaf(via) });
                }
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

/// The items and log lines of a trace, each once, and what derives from what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: BTreeMap<String, Node>,
    /// From an item to what it rests on.
    derived: BTreeSet<(String, String)>,
    /// From a file to its items.
    members: BTreeSet<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    text: String,
    kind: NodeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    File,
    Item,
    LogLines,
}

impl Graph {
    /// Returns the graph of a trace down to log lines.
    pub fn down(trace: &Trace) -> Self {
        let mut graph = Self::default();
        graph.add(trace);
        graph
    }

    /// Returns the graph of a log line and all items that rest on it.
    pub fn up(trace: &TraceUp) -> Self {
        let mut graph = Self::default();
        let source = graph.add_place(&trace.target, NodeKind::LogLines);
        for item in &trace.derived {
            let item = graph.add_place(&item.place, NodeKind::Item);
            graph.derived.insert((item, source.clone()));
        }
        graph
    }

    /// Returns the drawing in the language of Graphviz; arrows lead from an item to its sources.
    pub fn dot(&self) -> String {
        let mut lines = vec!["digraph trace {\n  rankdir=LR;\n  node [shape=box];".to_owned()];
        for (id, node) in &self.nodes {
            let style = if node.kind == NodeKind::LogLines { ", style=rounded" } else { "" };
            let words = if node.text.is_empty() { "" } else { "\n" };
            let label = quoted(&format!("{id}{words}{}", node.text));
            lines.push(format!("  {} [label={label}{style}];", quoted(id)));
        }
        for (from, to) in self.members.iter().chain(&self.derived) {
            lines.push(format!("  {} -> {};", quoted(from), quoted(to)));
        }
        lines.push("}\n".to_owned());
        lines.join("\n")
    }

    /// Returns the graph as PROV-JSON, as its W3C member submission describes it.
    ///
    /// Items and ranges of log lines are entities; a file that was traced as a whole is a collection.
    pub fn prov(&self) -> Value {
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
                (qualified(id), entity)
            })
            .collect();
        let mut document = json!({
            "prefix": {"root": "urn:memoird:root:", "memoird": "urn:memoird:vocabulary:"},
            "entity": entities,
        });
        for (name, letter, pairs, [from, to]) in [
            ("wasDerivedFrom", 'd', &self.derived, ["prov:generatedEntity", "prov:usedEntity"]),
            ("hadMember", 'm', &self.members, ["prov:collection", "prov:entity"]),
        ] {
            let numbered = pairs.iter().zip(1..).map(|(ends, number)| {
                let ends = json!({from: qualified(&ends.0), to: qualified(&ends.1)});
                (format!("_:{letter}{number}"), ends)
            });
            if !pairs.is_empty() {
                document[name] = Value::Object(numbered.collect());
            }
        }
        document
    }

    fn add(&mut self, trace: &Trace) {
        let is_file = trace.target.line.is_none();
        let kind = if is_file { NodeKind::File } else { NodeKind::Item };
        let target = self.add_place(&trace.target, kind);
        // What the whole file rests on is what its items rest on.
        if trace.items.is_empty() {
            self.add_sources(&target, &trace.sources);
        }
        for item in &trace.items {
            self.add(item);
            self.members.insert((target.clone(), place_name(&item.target)));
        }
    }

    fn add_sources(&mut self, target: &str, sources: &[Source]) {
        for source in sources {
            let id = self.add_node(source_name(source), &source.text, NodeKind::LogLines);
            for via in &source.via {
                let via = self.add_place(via, NodeKind::Item);
                self.derived.insert((target.to_owned(), via.clone()));
                self.derived.insert((via, id.clone()));
            }
            if source.via.is_empty() {
                self.derived.insert((target.to_owned(), id.clone()));
            }
            self.add_sources(&id, &source.sources);
        }
    }

    fn add_place(&mut self, place: &Place, kind: NodeKind) -> String {
        self.add_node(place_name(place), &place.text, kind)
    }

    fn add_node(&mut self, id: String, text: &str, kind: NodeKind) -> String {
        self.nodes.entry(id.clone()).or_insert_with(|| Node { text: one_line(text), kind });
        id
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
            let bytes = c.to_string().into_bytes();
            name.extend(bytes.into_iter().map(|byte| format!("%{byte:02X}")));
        }
    }
    name
}
