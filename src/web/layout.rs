//! The frame of every page: head, choice of the folder, navigation, and the page's own content.

use maud::{DOCTYPE, Markup, html};

use super::{address::PageAddress, context::PageContext};
use crate::operations::{error::CommandError, format::with_tilde};

/// The content of a page.
pub(super) struct PageContent {
    title: String,
    body: Markup,
    /// Whether a browser without scripts loads the page again and again, because something runs.
    is_changing: bool,
}

/// After how many seconds a page about something that runs is loaded again.
const RELOAD_SECONDS: u32 = 2;

impl PageContent {
    /// Returns a page that changes only when somebody asks for it again.
    pub(super) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self { title: title.into(), body, is_changing: false }
    }

    /// Returns the page as one that changes by itself, or not.
    pub(super) fn changing(self, is_changing: bool) -> Self {
        Self { is_changing, ..self }
    }
}

/// The pages in the navigation: name, page, and the key that opens it.
const SECTIONS: [(&str, PageAddress, &str); 8] = [
    ("Today", PageAddress::Today, "t"),
    ("Timeline", PageAddress::Timeline(None), "l"),
    ("Topics", PageAddress::Topics, "o"),
    ("Search", PageAddress::Search, "/"),
    ("Review", PageAddress::Review, "r"),
    ("Runs", PageAddress::Runs, "u"),
    ("Cost", PageAddress::Cost, "c"),
    ("Sessions", PageAddress::Sessions, "s"),
];

/// What a page of an export may load: the files beside it. In a page that is opened as a file, `'self'` is nothing.
const EXPORT_POLICY: &str = "default-src 'none'; style-src 'self' file:; img-src 'self' file:; base-uri 'none'; form-action 'none'";

/// Returns a whole page.
pub(super) fn page(context: &PageContext, address: &PageAddress, shown: &PageContent) -> Markup {
    let current = section_of(address);
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(context, shown))
            body data-events=[context.server_url(&format!("/events/{}", context.folder.index))] {
                a .skip href="#content" { "Skip to the content" }
                header {
                    p .brand { (context.link(&PageAddress::Today, "memoird")) }
                    (folders(context))
                    nav aria-label="Pages" {
                        ul {
                            @for (name, page, key) in &SECTIONS {
                                @if let Some(href) = context.href(page) {
                                    li {
                                        a href=(href) data-key=(key) aria-current=[(current == Some(page)).then_some("page")] { (name) }
                                    }
                                }
                            }
                        }
                    }
                }
                main #content tabindex="-1" {
                    h1 { (shown.title) }
                    (shown.body)
                }
                footer {
                    @if context.is_export() {
                        p {
                            "Written by memoird " (env!("CARGO_PKG_VERSION")) " on " (context.today()) ": logs, sessions, and what was derived from "
                            "them, as they were on this day. Secrets are masked. Older versions, what was forgotten, and what waits for review are left out."
                        }
                    } @else {
                        p {
                            "memoird " (env!("CARGO_PKG_VERSION")) ", on this machine only. "
                            @if context.form_token().is_none() { "Nothing can be changed here. " }
                            span .keys hidden {
                                label {
                                    input type="checkbox" name="keys" autocomplete="off";
                                    " Keys: letters open pages, " kbd { "j" } " and " kbd { "k" } " move, " kbd { "/" } " searches."
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn head(context: &PageContext, shown: &PageContent) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            @if context.is_export() {
                meta http-equiv="Content-Security-Policy" content=(EXPORT_POLICY);
                meta name="referrer" content="no-referrer";
            }
            title { (shown.title) " – " (context.agent_name()) " – memoird" }
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            link rel="icon" href=(context.asset("icon.svg")) type="image/svg+xml";
            link rel="stylesheet" href=(context.asset("style.css"));
            @if !context.is_export() {
                script src=(context.asset("page.js")) defer {}
                // With scripts, the stream of events says when to load it again.
                @if shown.is_changing {
                    noscript { meta http-equiv="refresh" content=(RELOAD_SECONDS); }
                }
            }
        }
    }
}

/// Returns the name of the folder, and links to the others.
fn folders(context: &PageContext) -> Markup {
    let folder = &context.folder;
    let name = |at: usize| {
        let path = folder.paths.get(at);
        let path = path.map(|it| it.display().to_string());
        path.map(|it| with_tilde(&it, &context.call.environment.home)).unwrap_or_default()
    };
    let own = html! { bdi { (context.agent_name()) } " " small { bdi { (name(folder.index)) } } };
    if folder.paths.len() < 2 || context.is_export() {
        return html! { p .folder { (own) } };
    }
    html! {
        details .folder {
            summary { (own) }
            ul {
                @for at in (0..folder.paths.len()).filter(|it| *it != folder.index) {
                    li { a href=[context.server_url(&format!("/r/{at}/"))] { bdi { (name(at)) } } }
                }
            }
        }
    }
}

/// Returns the page of the navigation to which a page belongs.
fn section_of(address: &PageAddress) -> Option<&'static PageAddress> {
    let section = match address {
        PageAddress::Today => PageAddress::Today,
        PageAddress::Timeline(_) | PageAddress::Period(_) | PageAddress::Log(..) => {
            PageAddress::Timeline(None)
        }
        PageAddress::Topics => PageAddress::Topics,
        PageAddress::Search => PageAddress::Search,
        PageAddress::Review => PageAddress::Review,
        PageAddress::Runs | PageAddress::Run(_) | PageAddress::Undo(_) => PageAddress::Runs,
        PageAddress::Cost => PageAddress::Cost,
        PageAddress::Sessions | PageAddress::Session(_) => PageAddress::Sessions,
        PageAddress::Line(..)
        | PageAddress::File(_)
        | PageAddress::Item(..)
        | PageAddress::Versions(_)
        | PageAddress::Correct(..) => return None,
    };
    SECTIONS.iter().map(|it| &it.1).find(|it| **it == section)
}

/// Returns what is shown in the place of a page: what failed, and what to do.
pub(super) fn error_content(error: &CommandError) -> PageContent {
    let body = html! {
        p role="alert" { (error.to_string()) "." }
        @if !error.hints().is_empty() {
            p { "What helps:" }
            ul { @for hint in error.hints() { li { code { (hint) } } } }
        }
    };
    PageContent::new("This cannot be shown", body)
}

/// Returns a page that leads to another one of this server, and works without a script.
pub(super) fn forward_page(base: &str, url: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "memoird" }
                link rel="icon" href=(format!("{base}/assets/icon.svg")) type="image/svg+xml";
                meta http-equiv="refresh" content=(format!("0;url={url}"));
            }
            body { p { a href=(url) { "To the page" } } }
        }
    }
}

/// Returns a page for a request that has no folder: a refusal, or a failure to open one. `base` is where the pages
/// are, for those who know it.
pub(super) fn bare_page(base: Option<&str>, title: &str, message: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " – memoird" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(base) = base {
                    link rel="icon" href=(format!("{base}/assets/icon.svg")) type="image/svg+xml";
                    link rel="stylesheet" href=(format!("{base}/assets/style.css"));
                }
            }
            body {
                main #content {
                    h1 { (title) }
                    p role="alert" { (message) "." }
                }
            }
        }
    }
}

/// Returns the hidden field that each form has; `None` where nothing can be changed.
pub(super) fn form_token(context: &PageContext) -> Option<Markup> {
    let token = context.form_token()?;
    Some(html! { input type="hidden" name="csrf" value=(token); })
}
