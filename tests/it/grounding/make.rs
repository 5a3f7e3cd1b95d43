//! Generates true and false bullets from the lines of a journal.

use super::{Case, Days, Half, Journal, NaiveDate};

/// A line of a log.
struct Line {
    text: String,
    address: String,
    date: NaiveDate,
    half: Half,
    /// The number of the line, as a seed for choices.
    seed: usize,
}

/// Replacements: a word and its substitute.
type Table = &'static [(&'static str, &'static str)];

const MONTHS: [(&str, &str); 12] = [
    ("January", "Januar"),
    ("February", "Februar"),
    ("March", "März"),
    ("April", "April"),
    ("May", "Mai"),
    ("June", "Juni"),
    ("July", "Juli"),
    ("August", "August"),
    ("September", "September"),
    ("October", "Oktober"),
    ("November", "November"),
    ("December", "Dezember"),
];

const NUMBERS: Table = &[
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("ten", "10"),
    ("zwei", "2"),
    ("drei", "3"),
    ("vier", "4"),
    ("fünf", "5"),
    ("sechs", "6"),
    ("zehn", "10"),
];

const OTHER_NUMBERS: Table = &[
    ("two", "three"),
    ("three", "four"),
    ("four", "six"),
    ("five", "two"),
    ("six", "nine"),
    ("seven", "five"),
    ("ten", "twelve"),
    ("zwei", "drei"),
    ("drei", "fünf"),
    ("vier", "sieben"),
    ("fünf", "vier"),
    ("sechs", "acht"),
    ("zehn", "neun"),
];

const RELATIVE: Table = &[
    ("tomorrow", "yesterday"),
    ("yesterday", "tomorrow"),
    ("today", "tomorrow"),
    ("heute", "gestern"),
    ("morgen", "gestern"),
    ("last week", "next week"),
    ("next week", "last week"),
];

const WEEKDAYS: Table = &[
    ("Monday", "Tuesday"),
    ("Tuesday", "Wednesday"),
    ("Wednesday", "Thursday"),
    ("Thursday", "Friday"),
    ("Friday", "Saturday"),
    ("Saturday", "Sunday"),
    ("Sunday", "Monday"),
    ("Montag", "Dienstag"),
    ("Mittwoch", "Donnerstag"),
    ("Freitag", "Samstag"),
];

const OTHER_MONTHS: Table = &[
    ("January", "February"),
    ("February", "May"),
    ("March", "June"),
    ("April", "July"),
    ("August", "September"),
    ("September", "August"),
    ("October", "November"),
    ("November", "December"),
    ("Januar", "Juli"),
    ("Dezember", "November"),
];

const UNITS: Table = &[
    ("GB", "MB"),
    ("MB", "GB"),
    ("s per GB", "ms per GB"),
    ("minutes", "hours"),
    ("hours", "minutes"),
    ("days", "weeks"),
    ("weeks", "months"),
    ("°C", "°F"),
    ("km/h", "m/s"),
    ("hPa", "kPa"),
    ("cm", "mm"),
    ("mm", "cm"),
    ("m³", "m²"),
    ("Stunden", "Minuten"),
    ("Wochen", "Tage"),
];

/// Replacements that change the magnitude of an amount.
const AMOUNTS: Table =
    &[(" million", " billion"), (",000", ",000,000"), (" GB", " TB"), (" €", "k €")];

const CURRENCIES: Table = &[("€", "$"), ("EUR", "USD")];

const PEOPLE: [&[&str]; 2] = [
    &["Ines", "Tobias", "Priya", "Henk", "Lotte"],
    &["Karin", "Emre", "Mama", "Böhm", "Huber", "Seidl", "Lang", "Loy"],
];

const NEGATIONS: Table = &[
    ("is not", "is"),
    ("are not", "are"),
    ("was not", "was"),
    ("did not", "did"),
    ("does not", "does"),
    ("do not", "do"),
    ("had not", "had"),
    ("has not", "has"),
    ("could not", "could"),
    ("cannot", "can"),
    ("must not", "must"),
    ("need not", "need"),
    ("never", "always"),
    ("No", "A"),
    ("no", "a"),
    ("not", ""),
    ("never", ""),
    ("nobody", "everybody"),
    ("nothing", "something"),
    ("without", "with"),
    ("nicht", ""),
    ("keine", "eine"),
    ("kein", "ein"),
    ("nie", "immer"),
    ("ohne", "mit"),
];

const AUXILIARIES: Table = &[
    ("is", "is not"),
    ("are", "are not"),
    ("was", "was not"),
    ("were", "were not"),
    ("has", "has not"),
    ("have", "have not"),
    ("had", "had not"),
    ("will", "will not"),
    ("can", "cannot"),
    ("wants", "does not want"),
    ("prefers", "never prefers"),
    ("ist", "ist nicht"),
    ("sind", "sind nicht"),
    ("hat", "hat nicht"),
    ("war", "war nicht"),
];

const STRONGER: Table = &[
    ("is", "is always"),
    ("are", "are only"),
    ("was", "was always"),
    ("has", "always has"),
    ("wants", "always wants"),
    ("ist", "ist immer"),
    ("sind", "sind immer"),
    ("hat", "hat immer"),
];

const STRONG: &[&str] = &[
    "every time",
    "permanently",
    "the best so far",
    "in all cases",
    "as it must be",
    "the favourite of Ines",
    "guaranteed",
    "the fastest",
];

const GERMAN_STRONG: &[&str] = &["jedes Mal", "dauerhaft", "immer", "garantiert", "ausschließlich"];

const TYPOS: Table = &[("Tobias", "Tobais"), ("Kaltenegg", "Kaltenegk"), ("Dijkstra", "Dijkstar")];

pub(super) fn cases(journal: &Journal) -> Vec<Case> {
    let lines = lines(journal);
    let mut cases = placed_cases(journal);
    for (at, line) in lines.iter().enumerate() {
        let mut add = |is_true: bool, class: &str, text: &str| {
            let bullet = format!("{text} [{}]", line.address);
            cases.push(case(journal, line, is_true, class, bullet));
        };
        add(true, "verbatim", &line.text);
        if let Some(text) = first_sentence(&line.text) {
            add(true, "shortened", text);
        }
        for (class, text) in true_forms(line) {
            add(true, class, &text);
        }
        for (class, text) in false_forms(line, journal.name) {
            add(false, class, &text);
        }
        add(true, "title", &line.text);
        let faulty = [("title digit", other_digit(line)), ("title strengthened", stronger(line))];
        for (class, text) in faulty {
            if let Some(text) = text {
                add(false, class, &text);
            }
        }
        add(true, "date of the log", &format!("On {}: {}", line.date, line.text));
        let misspelled = by_table(&line.text, TYPOS);
        if let Some(text) = misspelled {
            add(true, "typo of a name", &text);
        }
        let next = lines.get(at + 1).filter(|it| it.date == line.date);
        if let Some(next) = next {
            let text = format!("{}; {}", line.text.trim_end_matches('.'), next.text);
            let bullet = format!("{text} [{}; {}]", line.address, next.address);
            cases.push(case(journal, line, true, "joined", bullet));
        }
        if line.text.len() > 40 {
            cases.push(case(journal, line, false, "uncited", line.text.clone()));
            let other = &lines[(at + 7 + line.seed % 5) % lines.len()];
            let bullet = format!("{} [{}]", line.text, other.address);
            if line.text != other.text {
                cases.push(case(journal, line, false, "wrong line", bullet));
            }
        }
    }
    cases
}

/// Returns true bullets that use what is above their line: heading, list parent, head of a table, and the
/// name of the log; and some that cite a blank line within a range.
fn placed_cases(journal: &Journal) -> Vec<Case> {
    let mut cases = Vec::new();
    for log in &journal.logs {
        let slug = log.stem().as_str().get(11..).unwrap_or_default().to_owned();
        let (mut heading, mut parent, mut head) = (String::new(), String::new(), Vec::new());
        let all = log.lines();
        for (at, source) in all.iter().enumerate() {
            let words = source.words().trim().to_owned();
            let address = log.address(source).to_string();
            let half = if cases.len() % 2 == 0 { Half::Open } else { Half::HeldOut };
            let (date, seed) = (log.date(), cases.len());
            let line = Line { text: words.clone(), address: address.clone(), date, half, seed };
            let mut add = |class: &str, before: &str, cited: &str| {
                let bullet = format!("{before}: {words} [{cited}]");
                cases.push(case(journal, &line, true, class, bullet));
            };
            let cells = |row: &str| -> Vec<String> {
                row.trim().trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect()
            };
            let raw = source.text();
            if raw.starts_with('#') {
                (heading, parent) = (words, String::new());
                continue;
            }
            if raw.starts_with('|') && !raw.contains("--") {
                let row = cells(raw);
                if head.len() == row.len() && row.len() > 1 {
                    let (name, value) = (&head[row.len() - 1], &row[row.len() - 1]);
                    let bullet = format!("{}: {name} {value} [{address}]", row[0]);
                    cases.push(case(journal, &line, true, "head of a table", bullet));
                } else {
                    head = row;
                }
                continue;
            }
            if !raw.starts_with('|') {
                head.clear();
            }
            let is_item = raw.trim_start().starts_with("- ");
            if !is_item || words.split_whitespace().count() < 4 {
                parent.clear();
                continue;
            }
            if !heading.is_empty() {
                add("heading", &heading, &address);
            }
            if raw.starts_with(' ') && !parent.is_empty() {
                add("list parent", &parent, &address);
            }
            if !slug.is_empty() {
                add("slug", &format!("In the {slug}"), &address);
            }
            if all.get(at + 1).is_some_and(|it| it.text().trim().is_empty()) {
                let range = format!("{address}-{}", source.number() + 1);
                add("blank in a range", "Noted", &range);
            }
            if !raw.starts_with(' ') {
                parent = words;
            }
        }
    }
    cases
}

/// Returns a version of the line that claims more.
fn stronger(line: &Line) -> Option<String> {
    let text = line.text.trim_end_matches('.');
    let german = text.contains(" und ") || text.contains(['ä', 'ö', 'ü', 'ß']);
    let inserted = by_table(text, STRONGER);
    if line.seed.is_multiple_of(2) && inserted.is_some() {
        return inserted;
    }
    let all = if german { GERMAN_STRONG } else { STRONG };
    Some(format!("{text}, {}", all[line.seed / 2 % all.len()]))
}

fn case(journal: &Journal, line: &Line, is_true: bool, class: &str, bullet: String) -> Case {
    let (journal, class) = (journal.name.to_owned(), class.to_owned());
    Case { half: line.half, journal, class, is_true, bullet }
}

fn lines(journal: &Journal) -> Vec<Line> {
    let mut lines = Vec::new();
    for log in &journal.logs {
        for line in log.lines().iter().filter(|it| it.is_content() && !it.is_quarantined()) {
            let text = line.words().trim().trim_start_matches("[ ] ").trim_start_matches("[x] ");
            if text.split_whitespace().count() < 4 || text.contains('|') {
                continue;
            }
            let seed = lines.len();
            let half = if seed % 2 == 0 { Half::Open } else { Half::HeldOut };
            let address = log.address(line).to_string();
            lines.push(Line { text: text.to_owned(), address, date: log.date(), half, seed });
        }
    }
    lines
}

fn first_sentence(text: &str) -> Option<&str> {
    let end = text.find(". ").or_else(|| text.find("; "))?;
    let first = &text[..end];
    let rest = text[end + 2..].chars().next()?;
    (first.split_whitespace().count() > 3 && rest.is_uppercase()).then_some(first)
}

/// Replaces the first occurrence of a whole word outside of code spans.
fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
    let is_boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let starts_word = |it: &str| it.starts_with(|c: char| c.is_alphanumeric());
    let is_word = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + from.len()..].chars().next();
        (is_boundary(before) || !starts_word(from))
            && (is_boundary(after) || !from.ends_with(char::is_alphanumeric))
    };
    // Text in code spans is not replaced.
    let is_outside_code = |at: usize| text[..at].matches('`').count().is_multiple_of(2);
    let (at, _) = text.match_indices(from).find(|(at, _)| is_word(*at) && is_outside_code(*at))?;
    let joined = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
    Some(joined.replace("  ", " ").trim().to_owned())
}

fn by_table(text: &str, table: Table) -> Option<String> {
    table.iter().find_map(|(from, to)| replaced(text, from, to))
}

/// Replaces a unit behind a number.
fn by_unit(text: &str, table: Table) -> Option<String> {
    table.iter().find_map(|(from, to)| {
        let follows = |at: usize| text[..at].trim_end().ends_with(|c: char| c.is_ascii_digit());
        let (at, _) = text.match_indices(from).find(|(at, _)| follows(*at))?;
        let after = text[at + from.len()..].chars().next();
        let ends = after.is_none_or(|c| !c.is_alphanumeric());
        ends.then(|| format!("{}{to}{}", &text[..at], &text[at + from.len()..]))
    })
}

/// Returns the start and end of each run of digits.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|it| it.is_ascii_digit()).count();
        if end == at {
            at += 1;
            continue;
        }
        found.push((at, end));
        at = end;
    }
    found
}

/// Returns the line in other notations with the same meaning.
fn true_forms(line: &Line) -> Vec<(&'static str, String)> {
    let text = &line.text;
    let mut forms = Vec::new();
    let mut add = |class, form: Option<String>| forms.extend(form.map(|it| (class, it)));
    for (number, (english, german)) in (1..).zip(MONTHS) {
        for day in 1..=31 {
            let iso = format!("2026-{number:02}-{day:02}");
            let day_first = format!("{day} {english}");
            add("date in words", replaced(text, &iso, &format!("{day_first} 2026")));
            add("date in words", replaced(text, &iso, &format!("{english} {day}, 2026")));
            add("month first", replaced(text, &day_first, &format!("{english} {day}")));
            if !text.contains(&format!("{day_first} 20")) {
                add("date in digits", replaced(text, &day_first, &iso));
            }
            let short = format!("{day:02}.{number:02}.");
            let long = format!("{short}2026");
            add("date in words", replaced(text, &long, &format!("{day}. {german} 2026")));
            add("date in digits", replaced(text, &long, &iso));
            if !text.contains(&long) {
                add("date in words", replaced(text, &short, &format!("{day}. {german}")));
            }
        }
    }
    add("number as digits", by_table(text, NUMBERS));
    for (word, digits) in NUMBERS {
        let german = line.text.contains(" und ") || line.text.contains('ü');
        if german == (word.contains('ü') || ["zwei", "drei", "vier", "sechs"].contains(word)) {
            let words = replaced(text, &format!(" {digits} "), &format!(" {word} "));
            let is_day =
                |it: &String| MONTHS.iter().any(|at| it.contains(&format!("{word} {}", at.0)));
            add("number in words", words.filter(|it| !is_day(it)));
        }
    }
    for (start, end) in numbers(text) {
        let digits = &text[start..end];
        let rest = &text[end..];
        let (before, after) = (&text[..start], rest.get(1..).unwrap_or_default());
        let thousands = after.len() >= 3 && after.as_bytes()[..3].iter().all(u8::is_ascii_digit);
        if rest.starts_with(',') && thousands && before.ends_with([' ', '(']) {
            let (group, rest) = after.split_at(3);
            let rest = rest.strip_prefix(',').unwrap_or(rest);
            add("thousands", Some(format!("{before}{digits}{group}{rest}")));
        }
        if rest.starts_with('%') {
            add("percent", Some(format!("{before}{digits} %{after}")));
            add("percent", Some(format!("{before}{digits} percent{after}")));
        }
        if before.ends_with('€') {
            let before = before.trim_end_matches('€');
            add("currency", Some(format!("{before}{digits} EUR{rest}")));
            add("currency", Some(format!("{before}{digits} euros{rest}")));
        }
        if let Some(rest) = rest.strip_prefix(" €") {
            add("currency", Some(format!("{before}{digits} Euro{rest}")));
            add("currency", Some(format!("{before}{digits} EUR{rest}")));
        }
        let minutes = after.len() >= 2 && after.as_bytes()[..2].iter().all(u8::is_ascii_digit);
        let follows = after.get(2..3).unwrap_or_default();
        let hour: u32 = digits.parse().unwrap_or(99);
        let is_time = rest.starts_with(':')
            && minutes
            && hour < 24
            && digits.len() == 2
            && before.ends_with(' ')
            && !follows.starts_with(['"', ':']);
        if is_time {
            let (half, hour) = match hour {
                13.. => ("PM", hour - 12),
                12 => ("PM", 12),
                0 => ("AM", 12),
                _ => ("AM", hour),
            };
            let (minutes, rest) = after.split_at(2);
            add("time of day", Some(format!("{before}{hour}:{minutes} {half}{rest}")));
        }
    }
    let resolved = |days: u64, back: bool| {
        let to = if back { line.date - Days::new(days) } else { line.date + Days::new(days) };
        format!("on {to}")
    };
    for (word, days, back) in [
        ("today", 0, false),
        ("tomorrow", 1, false),
        ("yesterday", 1, true),
        ("heute", 0, false),
        ("morgen", 1, false),
    ] {
        add("relative date", replaced(text, word, &resolved(days, back)));
    }
    forms
}

/// Returns versions of the line with one fault each.
fn false_forms(line: &Line, journal: &str) -> Vec<(&'static str, String)> {
    let text = &line.text;
    let mut forms = Vec::new();
    let mut add = |class, form: Option<String>| forms.extend(form.map(|it| (class, it)));
    add("digit", other_digit(line));
    add("number word", by_table(text, OTHER_NUMBERS));
    add("relative date", by_table(text, RELATIVE));
    let yesterday = line.date - Days::new(1);
    add("relative date", replaced(text, "today", &format!("on {yesterday}")));
    add("relative date", replaced(text, "tomorrow", &format!("on {}", line.date)));
    add("weekday", by_table(text, WEEKDAYS));
    // Not the month of the line's date.
    let own = MONTHS[chrono::Datelike::month0(&line.date) as usize];
    let month = by_table(text, OTHER_MONTHS).filter(|it| !it.contains(own.0));
    add("month", month);
    add("date", other_day(line));
    add("unit", by_unit(text, UNITS));
    add("amount", by_unit(text, AMOUNTS));
    add("currency", by_table(text, CURRENCIES));
    add("percent", text.contains('%').then(|| text.replacen('%', "", 1).replacen(" ,", ",", 1)));
    let people = PEOPLE[usize::from(journal != "mara")];
    let present: Vec<&&str> = people.iter().filter(|it| replaced(text, it, "").is_some()).collect();
    let absent = people.iter().filter(|it| !text.contains(**it)).nth(line.seed % 3);
    if let (Some(name), Some(absent)) = (present.first(), absent) {
        add("name", replaced(text, name, absent));
    }
    let joined = |a: &str, b: &str| {
        ["and", "und"].iter().any(|it| {
            text.contains(&format!("{a} {it} {b}")) || text.contains(&format!("{b} {it} {a}"))
        })
    };
    if let [a, b, ..] = present[..]
        && !joined(a, b)
    {
        let swapped = replaced(text, a, "\u{1}").and_then(|it| replaced(&it, b, a));
        add("attribution", swapped.map(|it| it.replacen('\u{1}', b, 1)));
    }
    add("negation dropped", by_table(text, NEGATIONS));
    // A second negation would cancel the first.
    let is_negated = |it: &str| {
        ["not", "no", "nobody", "nicht", "kein"].iter().any(|no| replaced(it, no, "").is_some())
    };
    add("negation added", by_table(text, AUXILIARIES).filter(|_| !is_negated(text)));
    let text = text.trim_end_matches('.');
    add("strengthened", stronger(line));
    let reason = if text.contains(" und ") {
        "weil die Lizenz teuer war"
    } else {
        "because licence fees rose"
    };
    add("reason", Some(format!("{text}, {reason}")));
    let mut appended = |class, what: &str| add(class, Some(format!("{text}{what}")));
    match line.seed / 2 % 7 {
        0 => appended("identifier", " (commit 3fae91c)"),
        1 => appended("identifier", ", see #977"),
        2 => appended("version", " since v7.4.1"),
        3 => appended("path", " in `src/zeta/mod.rs`"),
        4 => appended("path", " in src/zeta/mod.rs"),
        5 => appended("url", ", see https://nowhere.example.net/x"),
        _ => appended("extra name", ", as Zoltan asked"),
    }
    forms
}

/// Changes one digit, so that the number is not in the line.
fn other_digit(line: &Line) -> Option<String> {
    let all = numbers(&line.text);
    let &(start, end) = all.get(line.seed % all.len().max(1))?;
    let at = start + line.seed % (end - start);
    (1..10).find_map(|step| {
        let digit = (line.text.as_bytes()[at] - b'0' + step) % 10;
        let other = format!("{}{digit}{}", &line.text[..at], &line.text[at + 1..]);
        let number = &other[start..end];
        (digit > 0 && !line.text.contains(number)).then_some(other)
    })
}

/// Changes a date by one day.
fn other_day(line: &Line) -> Option<String> {
    let text = &line.text;
    for (number, (english, _)) in (1..).zip(MONTHS) {
        for day in 1..=28u32 {
            let to = if line.seed % 4 < 2 && day > 1 { day - 1 } else { day + 1 };
            let forms = [
                (format!("2026-{number:02}-{day:02}"), format!("2026-{number:02}-{to:02}")),
                (format!("{day} {english}"), format!("{to} {english}")),
                (format!("{day:02}.{number:02}."), format!("{to:02}.{number:02}.")),
            ];
            let other = forms.iter().find_map(|(from, other)| replaced(text, from, other));
            if let Some(other) = other {
                return Some(other);
            }
        }
    }
    None
}
