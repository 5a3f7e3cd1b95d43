//! The stylesheet and the script of the page, which are part of the program.

const STYLE: &str = include_str!("assets/style.css");
/// The script: keys, and the progress of a run. Every page works without it.
const SCRIPT: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Returns the type and the content of an asset.
pub(super) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "style.css" => Some(("text/css; charset=utf-8", STYLE)),
        "page.js" => Some(("text/javascript; charset=utf-8", SCRIPT)),
        "icon.svg" => Some(("image/svg+xml", ICON)),
        _ => None,
    }
}
