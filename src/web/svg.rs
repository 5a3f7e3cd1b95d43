//! Drawings, made as text: bars over time, and the lineage of an item.
//!
//! Colors come from the stylesheet, by class. Every text is escaped by the template.

use maud::{Markup, html};

/// A bar of the timeline.
#[derive(Clone, Debug, Default)]
pub(super) struct Bar {
    /// Below the bar; may be empty.
    pub(super) label: String,
    /// What a reader hears and sees on the bar: `2026-W14: 12 KB of logs, 3 lines left out`.
    pub(super) title: String,
    pub(super) href: Option<String>,
    /// The volume of logs, in bytes.
    pub(super) volume: u64,
    /// The length of the summary as a share of the logs, from 0 to 1; `None` without a summary.
    pub(super) covered: Option<f64>,
    /// The class of a mark above the bar: `stuck`, `due`, `gap`.
    pub(super) mark: Option<&'static str>,
}

impl Bar {
    /// Returns what a link is called; it begins with what is seen.
    fn name(&self) -> String {
        if self.label.is_empty() {
            return self.title.clone();
        }
        format!("{}, {}", self.label, self.title)
    }
}

const BAR_HEIGHT: f64 = 70.0;
const MARK_HEIGHT: f64 = 12.0;
const LABEL_HEIGHT: f64 = 16.0;

/// Draws bars side by side, each `width` units wide.
#[expect(clippy::cast_precision_loss, reason = "positions in a drawing")]
pub(super) fn bars(name: &str, bars: &[Bar], width: f64) -> Markup {
    let tallest = bars.iter().map(|it| it.volume).max().unwrap_or(0).max(1) as f64;
    let total = width * bars.len() as f64;
    let height = MARK_HEIGHT + BAR_HEIGHT + LABEL_HEIGHT;
    html! {
        div .strip role="region" aria-label=(name) tabindex="0" {
            svg viewBox=(format!("0 0 {total} {height}")) width=(total) height=(height) aria-label=(name) role="group" {
                @for (i, bar) in bars.iter().enumerate() {
                    @match &bar.href {
                        Some(href) => a href=(href) aria-label=(bar.name()) { (one_bar(bar, i as f64 * width, width, tallest)) },
                        None => (one_bar(bar, i as f64 * width, width, tallest)),
                    }
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "positions in a drawing")]
fn one_bar(bar: &Bar, x: f64, width: f64, tallest: f64) -> Markup {
    let height = (bar.volume as f64 / tallest).sqrt() * BAR_HEIGHT;
    let height = if bar.volume > 0 { height.max(3.0) } else { 0.0 };
    let top = MARK_HEIGHT + BAR_HEIGHT - height;
    let covered = height * bar.covered.unwrap_or(0.0).clamp(0.0, 1.0);
    let (inner, gap) = (width - 3.0, 1.5);
    let number = |it: f64| format!("{it:.1}");
    html! {
        g {
            title { (bar.title) }
            rect .cell x=(number(x)) y="0" width=(number(width)) height=(number(MARK_HEIGHT + BAR_HEIGHT)) {}
            rect .log x=(number(x + gap)) y=(number(top)) width=(number(inner)) height=(number(height)) {}
            rect .covered x=(number(x + gap)) y=(number(top + height - covered)) width=(number(inner)) height=(number(covered)) {}
            @if let Some(mark) = bar.mark {
                @if mark == "gap" {
                    rect .gap x=(number(x + gap)) y=(number(MARK_HEIGHT + BAR_HEIGHT - 4.0)) width=(number(inner)) height="3" {}
                } @else {
                    circle class=(mark) cx=(number(x + width / 2.0)) cy="6" r="4" {}
                }
            }
            @if !bar.label.is_empty() {
                text x=(number(x + width / 2.0)) y=(number(MARK_HEIGHT + BAR_HEIGHT + 12.0)) text-anchor="middle" { (bar.label) }
            }
        }
    }
}

/// A box of a lineage: its column, from the left, and its link.
#[derive(Clone, Debug)]
pub(super) struct GraphNode {
    pub(super) column: usize,
    pub(super) label: String,
    pub(super) title: String,
    pub(super) href: Option<String>,
    /// Whether the page is about this one.
    pub(super) is_target: bool,
}

/// How many characters of a label fit into a box.
const LABEL_CHARS_MAX: usize = 22;

impl GraphNode {
    fn shown_label(&self) -> String {
        if self.label.chars().count() <= LABEL_CHARS_MAX {
            return self.label.clone();
        }
        self.label.chars().take(LABEL_CHARS_MAX - 1).chain(['…']).collect()
    }
}

const NODE_WIDTH: f64 = 150.0;
const NODE_HEIGHT: f64 = 24.0;
const COLUMN_WIDTH: f64 = 190.0;
const ROW_HEIGHT: f64 = 32.0;

/// Draws boxes in named columns, and lines between them; `edges` are indexes into `nodes`.
#[expect(clippy::cast_precision_loss, reason = "positions in a drawing")]
pub(super) fn graph(
    name: &str,
    columns: &[&str],
    nodes: &[GraphNode],
    edges: &[(usize, usize)],
) -> Markup {
    let used: Vec<usize> =
        (0..columns.len()).filter(|at| nodes.iter().any(|it| it.column == *at)).collect();
    let mut rows = vec![0_usize; columns.len()];
    let mut places = Vec::new();
    for node in nodes {
        let column = used.iter().position(|it| *it == node.column).unwrap_or(0);
        let row = rows.get(node.column).copied().unwrap_or(0);
        if let Some(count) = rows.get_mut(node.column) {
            *count += 1;
        }
        places.push((column as f64 * COLUMN_WIDTH + 4.0, row as f64 * ROW_HEIGHT + 24.0));
    }
    let tallest = rows.iter().copied().max().unwrap_or(0) as f64;
    let (width, height) = (used.len() as f64 * COLUMN_WIDTH, tallest * ROW_HEIGHT + 28.0);
    let ends = edges.iter().filter_map(|(from, to)| {
        let ((x1, y1), (x2, y2)) = (*places.get(*from)?, *places.get(*to)?);
        Some((x1 + NODE_WIDTH, y1 + NODE_HEIGHT / 2.0, x2, y2 + NODE_HEIGHT / 2.0))
    });
    html! {
        div .strip role="region" aria-label=(name) tabindex="0" {
            svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="group" aria-label=(name) {
                @for (at, column) in used.iter().enumerate() {
                    text .column x=(at as f64 * COLUMN_WIDTH + 4.0) y="14" { (columns.get(*column).copied().unwrap_or_default()) }
                }
                @for (x1, y1, x2, y2) in ends {
                    path .edge d=(format!("M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}", x1 + 20.0, x2 - 20.0)) {}
                }
                @for (node, (x, y)) in nodes.iter().zip(&places) {
                    @match &node.href {
                        Some(href) => a href=(href) aria-label=(format!("{}: {}", node.shown_label(), node.title)) { (node_box(node, *x, *y)) },
                        None => (node_box(node, *x, *y)),
                    }
                }
            }
        }
    }
}

fn node_box(node: &GraphNode, x: f64, y: f64) -> Markup {
    html! {
        g {
            title { (node.title) }
            rect class=(if node.is_target { "node target" } else { "node" }) x=(x) y=(y) width=(NODE_WIDTH) height=(NODE_HEIGHT) rx="4" {}
            text x=(x + 8.0) y=(y + 16.0) { (node.shown_label()) }
        }
    }
}
