//! Reads a page: its elements, links, and text. Fails on what no page of ours may have.

use std::collections::HashSet;

/// A start tag: name, and attributes as written.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
}

impl Element {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|it| it.0 == name).map(|it| &it.1[..])
    }
}

/// Elements without content.
const VOID: [&str; 3] = ["meta", "link", "input"];

/// All elements that our pages use.
const KNOWN: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "link",
    "script",
    "noscript",
    "body",
    "a",
    "header",
    "nav",
    "main",
    "footer",
    "section",
    "div",
    "p",
    "h1",
    "h2",
    "h3",
    "ul",
    "ol",
    "li",
    "span",
    "small",
    "strong",
    "code",
    "kbd",
    "bdi",
    "blockquote",
    "details",
    "summary",
    "table",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "form",
    "input",
    "select",
    "option",
    "textarea",
    "button",
    "label",
    "fieldset",
    "legend",
    "svg",
    "g",
    "rect",
    "circle",
    "path",
    "text",
    "ins",
    "del",
    "mark",
];

/// What a paragraph may not hold.
const BLOCKS: [&str; 12] =
    ["p", "div", "ul", "ol", "section", "table", "form", "h1", "h2", "h3", "blockquote", "details"];

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Returns the elements of a page in order; fails where a tag is not closed, unknown, or holds a script or style.
#[track_caller]
pub(super) fn elements(page: &str) -> Vec<Element> {
    let rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = rest;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(name) = rest.strip_prefix('/').and_then(|it| it.split('>').next()) {
            assert_eq!(
                open.pop().as_deref(),
                Some(name),
                "closed before: {}",
                &rest[..rest.len().min(80)]
            );
            continue;
        }
        let (element, after) = start_tag(rest);
        check(&element, open.last().map(String::as_str));
        rest = after;
        if !VOID.contains(&&element.name[..]) {
            open.push(element.name.clone());
        }
        found.push(element);
    }
    assert_eq!(open, Vec::<String>::new(), "not closed");
    found
}

fn start_tag(text: &str) -> (Element, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
    let (name, mut rest) = text.split_at(end);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('>') {
            return (Element { name: name.to_owned(), attributes }, after);
        }
        let end = rest.find(['=', ' ', '>']).unwrap_or_else(|| panic!("a tag without end: {name}"));
        let (key, after) = rest.split_at(end);
        if let Some(value) = after.strip_prefix("=\"") {
            let (value, after) = value.split_once('"').unwrap();
            attributes.push((key.to_owned(), unescaped(value)));
            rest = after;
        } else {
            attributes.push((key.to_owned(), String::new()));
            rest = after;
        }
    }
}

#[track_caller]
fn check(element: &Element, parent: Option<&str>) {
    let name = &element.name[..];
    assert!(KNOWN.contains(&name), "an element that no page has: {element:?}");
    for (key, _) in &element.attributes {
        let is_plain = key.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        assert!(is_plain && !key.starts_with("on") && key != "style", "{element:?}");
    }
    if name == "script" {
        assert_eq!(element.get("src"), Some("/assets/page.js"), "{element:?}");
    }
    let is_inside_text = matches!(parent, Some("p" | "span" | "h1" | "h2" | "h3"));
    assert!(!is_inside_text || !BLOCKS.contains(&name), "{element:?} in {parent:?}");
    let is_item_place = name != "li" || matches!(parent, Some("ul" | "ol"));
    assert!(is_item_place, "{element:?} in {parent:?}");
    assert!(!matches!(parent, Some("ul" | "ol")) || name == "li", "{element:?} in {parent:?}");
}

/// Checks what every page has, and returns its elements.
#[track_caller]
pub(super) fn check_page(page: &str) -> Vec<Element> {
    let all = elements(page);
    let count = |name: &str| all.iter().filter(|it| it.name == name).count();
    let landmarks = ["html", "main", "h1", "header", "footer"].map(count);
    assert_eq!(landmarks, [1; 5]);
    assert_eq!(all[0].get("lang"), Some("en"));
    let ids: Vec<&str> = all.iter().filter_map(|it| it.get("id")).collect();
    let distinct: HashSet<&&str> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "an id is used twice: {ids:?}");
    for element in &all {
        for name in ["for", "aria-labelledby"] {
            if let Some(id) = element.get(name) {
                assert!(ids.contains(&id), "{element:?} names no element");
            }
        }
        let is_field = matches!(&element.name[..], "input" | "select" | "textarea");
        let is_hidden = element.get("type") == Some("hidden");
        assert!(
            !is_field
                || is_hidden
                || element.get("name").is_some()
                || element.get("data-all").is_some()
        );
    }
    all
}

/// Returns the targets of all links.
pub(super) fn links(all: &[Element]) -> Vec<String> {
    let links = all.iter().filter(|it| it.name == "a").filter_map(|it| it.get("href"));
    links.map(str::to_owned).collect()
}

/// Returns the text of a page without its tags.
pub(super) fn text(page: &str) -> String {
    let mut text = String::new();
    for piece in page.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |it| it.1));
    }
    unescaped(&text)
}
