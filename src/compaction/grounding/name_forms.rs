//! The forms in which lines may have a name or word of an item. Pure.

use std::net::Ipv4Addr;

use crate::text::{lexicon::CLAIMS, scripts};

/// Returns whether a line has a size with its letter in the other case: a model of `7b` is one of `7B`.
pub(super) fn has_size_in_other_case<'l>(
    size: &str,
    mut lines: impl Iterator<Item = &'l str>,
) -> bool {
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let has = |line: &str| {
        let mut words = line.split(|c| !is_part(c));
        words.any(|it| it.trim_end_matches('.').eq_ignore_ascii_case(size))
    };
    size.strip_suffix(['b', 'B', 'k', 'K']).is_some_and(is_number) && lines.any(has)
}

/// Returns whether the lines have a name as a plural, `TideAgents`, or `Under 65` for `under-65`.
pub(super) fn has_other_notation(name: &str, lines: &[&str]) -> bool {
    let has_inner_capital = name.chars().skip(1).any(char::is_uppercase)
        && name.ends_with(|c: char| c.is_lowercase() && c != 's');
    let plural = has_inner_capital.then(|| format!("{name}s"));
    if plural.is_some_and(|it| lines.iter().any(|line| contains_word(line, &it))) {
        return true;
    }
    // `PAY-42` is a ticket, whatever was paid.
    let Some((word, number)) = name.split_once('-') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    let is_word = word.chars().count() > 2 && word.chars().skip(1).all(char::is_lowercase);
    let mut letters = word.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let spaced = format!("{capital}{} {number}", letters.as_str());
    is_number && is_word && lines.iter().any(|it| contains_word(it, &spaced))
}

/// Returns whether the lines have another form of a word: an address for `URL`, `EN` for `English`, `…/pull/51` for
/// `PR` and `#51`, `FF68` for `Firefox`; or what is above them, its name in full or in another script.
pub(super) fn has_other_form(text: &str, lines: &[&str], above: &[&str]) -> bool {
    /// Words with their short forms. Not Italian: `IT` is also another word.
    const SHORT: [(&str, &str); 15] = [
        ("English", "EN"),
        ("German", "DE"),
        ("French", "FR"),
        ("Spanish", "ES"),
        ("Portuguese", "PT"),
        ("Dutch", "NL"),
        ("Russian", "RU"),
        ("Chinese", "ZH"),
        ("Japanese", "JA"),
        ("Firefox", "FF"),
        ("TypeScript", "TS"),
        ("JavaScript", "JS"),
        ("GitHub", "GH"),
        ("Kubernetes", "K8s"),
        ("Kubernetes", "k8s"),
    ];
    if has_translation(text, lines, above) {
        return true;
    }
    let has = |parts: &[&str]| {
        lines.iter().any(|line| {
            let line = line.to_lowercase();
            parts.iter().any(|it| line.contains(it))
        })
    };
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    match text {
        "URL" | "URLs" => return has(&["://"]),
        "PR" | "PRs" => return has(&["pull request", "/pull/", "/pulls/"]),
        "IP" | "IPs" => return lines.iter().any(|it| has_ip_address(it)),
        "ID" | "IDs" => return has_digit(lines),
        "CLI" => return has(&["`"]),
        "MR" | "MRs" => return has(&["merge request", "/merge_requests/"]),
        _ => {}
    }
    // `TypeErrors` are two of `TypeError`.
    let has_inner_capital = |it: &&str| it.chars().skip(1).any(char::is_uppercase);
    let singular = text.strip_suffix('s').filter(|it| it.ends_with(char::is_lowercase));
    if let Some(singular) = singular.filter(has_inner_capital)
        && lines.iter().map(|it| it.matches(singular).count()).sum::<usize>() > 1
    {
        return true;
    }
    if let Some(number) = text.strip_prefix('#').filter(|it| is_number(it)) {
        return lines
            .iter()
            .any(|it| names_issue(it, number) || is_numbered_row(it, above, number));
    }
    if is_initials(text) && lines.iter().chain(above).any(|it| has_initials(it, text)) {
        return true;
    }
    let short = || SHORT.iter().filter(|it| it.0 == text).map(|it| it.1);
    let is_name = text.chars().count() > 2 && text.chars().all(char::is_alphabetic);
    lines.iter().any(|line| {
        short().any(|it| contains_word(line, it) && !is_before_number(line, it))
            || (text == "Firefox" && is_before_number(line, "FF"))
            || (is_name && is_before_number(line, text))
    })
}

/// Returns whether the lines, or what is above them, name the same in a script without spaces.
fn has_translation(name: &str, lines: &[&str], above: &[&str]) -> bool {
    let other = CLAIMS.translated_names.get(&name.to_lowercase()[..]);
    other.is_some_and(|other| {
        lines.iter().chain(above).any(|line| other.iter().any(|it| line.contains(it)))
    })
}

/// Returns whether `line` contains `needle`, and not as part of a longer word or number.
pub(super) fn contains_word(line: &str, needle: &str) -> bool {
    let bounded = |c: char| c.is_alphanumeric();
    let starts = needle.starts_with(bounded);
    let ends = needle.ends_with(bounded);
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let mut after = line[at + needle.len()..].chars();
        let next = after.next();
        // `1.5` does not contain 1, and `1,500` does not contain 500.
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let split_number =
            |mark: Option<char>, far: Option<char>| matches!(mark, Some('.' | ',')) && digit(far);
        let far_before = line[..at].chars().rev().nth(1);
        let far_after = after.next();
        let numeric = needle.bytes().all(|b| b.is_ascii_digit());
        let longer_word =
            (starts && before.is_some_and(bounded)) || (ends && next.is_some_and(bounded));
        let longer_number =
            numeric && (split_number(before, far_before) || split_number(next, far_after));
        !longer_word && !longer_number
    })
}

/// Returns whether code of a line calls a function, `call` being its name with the bracket.
pub(super) fn has_call(line: &str, call: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    line.contains('`') && line.match_indices(call).any(|(at, _)| !line[..at].ends_with(is_name))
}

/// Returns whether a line names an issue or change by its number: `…/issues/51`, `pull/51`, `issue 51`.
fn names_issue(line: &str, number: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(number).any(|(at, _)| {
        let before = &line[..at];
        let is_whole = !line[at + number.len()..].starts_with(|c: char| c.is_ascii_digit());
        let kinds =
            ["issues/", "pull/", "merge_requests/", "issue ", "issue #", "pr ", "pr #", "mr "];
        let is_kind = |kind: &&str| {
            before.strip_suffix(*kind).is_some_and(|it| !it.ends_with(char::is_alphanumeric))
        };
        is_whole && kinds.iter().any(is_kind)
    })
}

/// Returns whether a line is the row of a table of which the head above it says that this is its number: `331` below `#`.
fn is_numbered_row(line: &str, above: &[&str], number: &str) -> bool {
    const HEADS: [&str; 8] = ["#", "id", "no", "nr", "issue", "ticket", "task", "pr"];
    let cells = |it: &str| -> Vec<String> {
        it.trim()
            .trim_matches('|')
            .split('|')
            .map(|it| it.trim_matches([' ', '*', '`']).to_lowercase())
            .collect()
    };
    let Some(at) = cells(line).iter().position(|it| it == number) else { return false };
    let is_head = |it: &&&str| it.trim().starts_with('|');
    line.trim().starts_with('|')
        && above.iter().find(is_head).is_some_and(|head| {
            let head = cells(head);
            head.get(at).is_some_and(|it| HEADS.contains(&it.trim_end_matches('.')))
        })
}

/// Returns whether a line has an IPv4 address.
fn has_ip_address(line: &str) -> bool {
    line.split(|c: char| !c.is_ascii_digit() && c != '.').any(|it| it.parse::<Ipv4Addr>().is_ok())
}

fn has_digit(lines: &[&str]) -> bool {
    lines.iter().any(|it| it.bytes().any(|it| it.is_ascii_digit()))
}

/// Returns whether the lines have a path in parts: folder and file of a tree, `└── tools/` and `├── sync.sh`; or, in a
/// list such as `体育/音乐/Ann`, each name.
pub(super) fn has_path_in_parts(path: &str, lines: &[&str]) -> bool {
    let parts = || path.split('/').filter(|it| !it.is_empty());
    let has = |part: &str| lines.iter().any(|it| contains_word(it, part));
    if path.contains(scripts::is_spaceless) {
        let is_rooted = path.starts_with(['/', '~', '.']);
        let mut names = parts().filter(|it| it.is_ascii());
        return !is_rooted && !path.contains('.') && names.all(has);
    }
    let is_tree = |it: &&str| it.contains(['├', '└']);
    lines.iter().any(is_tree) && parts().count() > 1 && parts().all(has)
}

/// Returns whether a line has code that an item shortens: `![](/media/…)` of `![](/media/01ABC)`.
pub(super) fn has_shortened_code(code: &str, lines: &[&str]) -> bool {
    const CHARS_MIN: usize = 5;
    let code = code.trim_matches('`').replace("...", "…");
    let parts: Vec<&str> = code.split('…').collect();
    let chars: usize = parts.iter().map(|it| it.chars().count()).sum();
    let is_within = |line: &&str| {
        let mut rest = *line;
        parts.iter().all(|part| {
            let found = rest.find(part).map(|at| &rest[at + part.len()..]);
            rest = found.unwrap_or_default();
            found.is_some()
        })
    };
    parts.len() > 1 && chars >= CHARS_MIN && lines.iter().any(is_within)
}

/// Returns whether a word may be the initials of a name, `GW`, or a letter with a number, `T1`.
fn is_initials(word: &str) -> bool {
    const LETTERS_MAX: usize = 4;
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = word.len() - letters.len();
    let count = letters.chars().count();
    let is_short = if digits == 0 { (2..=LETTERS_MAX).contains(&count) } else { count == 1 };
    is_short && digits <= 2 && letters.chars().all(char::is_uppercase)
}

/// Returns whether a line has the name of which these are the initials: `Garden Watch` of `GW`, `Tier 1` of `T1`.
fn has_initials(line: &str, initials: &str) -> bool {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    let letters = initials.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &initials[letters.len()..];
    let count = letters.chars().count();
    // `Statement of Tides` is the `SOT`.
    let opens = |word: &str, letter: char| {
        word.starts_with(letter)
            || (CLAIMS.of_words.contains(&word) && word.starts_with(letter.to_ascii_lowercase()))
    };
    let is_name = |name: &[&str]| {
        name.iter().zip(letters.chars()).all(|(word, letter)| opens(word, letter))
            && name.iter().take(count).all(|it| it.chars().any(char::is_lowercase))
            && (number.is_empty() || name.last() == Some(&number))
    };
    let length = count + usize::from(!number.is_empty());
    words.windows(length).any(is_name)
}

/// Returns whether digits follow a word directly: `FF68`.
fn is_before_number(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(char::is_alphanumeric)
            && line[at + word.len()..]
                .trim_start_matches(' ')
                .starts_with(|c: char| c.is_ascii_digit())
    })
}
