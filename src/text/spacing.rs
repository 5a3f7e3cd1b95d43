//! Sets spaces where a script that has none meets another one.
//!
//! `连续3次失败` is one word for whoever cuts a text at its spaces, so that neither the number nor a Latin name in such a
//! text is found. Texts that are compared are spaced alike first; what is written into files never is. Pure.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use super::{
    calendar,
    lexicon::{CALENDAR, QUANTITIES},
    scripts::{is_hangul_syllable, is_spaceless},
};

/// The words that are cut out of a run of a script without spaces.
struct SpacelessWords {
    /// Units, magnitudes, and what numbers count, longest first: they are words behind a number only.
    after_numbers: Vec<&'static str>,
    /// Words that are numbers, before one of those.
    numbers: Vec<&'static str>,
    /// The days of the week, and words such as `today`.
    days: Vec<&'static str>,
}

static WORDS: LazyLock<SpacelessWords> = LazyLock::new(|| {
    let has_no_spaces =
        |it: &&'static str| it.starts_with(|c| is_spaceless(c) || is_hangul_syllable(c));
    let longest_first = |words: &mut Vec<&'static str>| {
        words.sort_by_key(|it| std::cmp::Reverse(it.len()));
    };
    let units = QUANTITIES.units.strict.iter().chain(&QUANTITIES.units.lenient).flatten();
    let after = units.chain(QUANTITIES.magnitudes.keys()).chain(QUANTITIES.counters.iter());
    let mut after_numbers: Vec<_> = after.copied().filter(has_no_spaces).collect();
    longest_first(&mut after_numbers);
    let numbers = QUANTITIES.numbers.values().flat_map(|it| it.keys()).copied();
    let weekdays = calendar::weekdays_of(&["zh", "ja"]).map(|it| it.0);
    let days = CALENDAR.relative_days.values().flat_map(|it| it.keys()).copied();
    let mut days: Vec<_> = weekdays.chain(days).filter(has_no_spaces).collect();
    longest_first(&mut days);
    SpacelessWords { after_numbers, numbers: numbers.filter(has_no_spaces).collect(), days }
});

/// Returns a text with a space between letters or digits and a script without spaces beside them, and around numbers,
/// units and days within it: `连续3次失败` is `连续 3 次 失败`.
pub(crate) fn spaced(text: &str) -> Cow<'_, str> {
    if text.contains(is_other_hyphen) {
        return Cow::Owned(spaced(&text.replace(is_other_hyphen, "-")).into_owned());
    }
    // Latin, Cyrillic, Arabic and their neighbours take two bytes at most.
    if text.bytes().all(|b| b < 0xE0)
        || !text.contains(|c| is_spaceless(c) || is_hangul_syllable(c))
    {
        return Cow::Borrowed(text);
    }
    let mut cuts = Vec::new();
    let mut before = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let class = ScriptClass::of(c);
        let rest = &text[at..];
        let is_loss = before == Some(ScriptClass::Spaceless) && opens_signed_number(rest);
        if is_loss || before.is_some_and(|it| class.is_parted_from(it)) {
            cuts.push(at);
        }
        let is_fresh = before != Some(ScriptClass::Digit);
        let date = if is_fresh { east_asian_date(rest) } else { None };
        let (end, class) = if let Some(date) = date {
            cuts.extend([at, at + date.length]);
            (at + date.length, ScriptClass::Spaceless)
        } else if class == ScriptClass::Digit {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let words = words_after_number(&rest[digits..]);
            cuts.extend(words.iter().flat_map(|it| [at + digits + it.start, at + digits + it.end]));
            let length = words.last().map_or(0, |it| it.end);
            let class = if length > 0 { ScriptClass::Spaceless } else { class };
            (at + digits + length, class)
        } else if before == Some(ScriptClass::Digit) && is_unit_sign(c) {
            // `41%损耗`; `25°C` is one unit.
            let end = at + c.len_utf8();
            let is_east = |c: char| is_spaceless(c) || is_hangul_syllable(c);
            cuts.extend(text[end..].starts_with(is_east).then_some(end));
            (end, class)
        } else if class == ScriptClass::Spaceless
            && !text[..at].ends_with(NUMERALS)
            && let Some(words) = spaceless_words(rest)
        {
            cuts.extend(words.iter().flat_map(|it| [at + it.start, at + it.end]));
            (at + words.last().map_or(0, |it| it.end), class)
        } else {
            (at + c.len_utf8(), class)
        };
        before = Some(class);
        at = end;
    }
    insert_spaces(text, &cuts)
}

/// Returns whether a text begins with a number and its sign: `-12.50`.
fn opens_signed_number(text: &str) -> bool {
    text.strip_prefix(['-', '+']).is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns whether a character is a hyphen or minus sign that editors set in place of the usual one.
fn is_other_hyphen(c: char) -> bool {
    matches!(c, '\u{2010}' | '\u{2011}' | '\u{2212}')
}

fn insert_spaces<'t>(text: &'t str, cuts: &[usize]) -> Cow<'t, str> {
    let mut whole = String::with_capacity(text.len() + cuts.len());
    let mut from = 0;
    for &at in cuts {
        let part = &text[from..at];
        whole.push_str(part);
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let before = text[..at].chars().next_back();
        let parts_words = (is_word(before) || before.is_some_and(is_unit_sign))
            && (is_word(text[at..].chars().next()) || opens_signed_number(&text[at..]));
        if parts_words && !(part.is_empty() && whole.ends_with(' ')) {
            whole.push(' ');
        }
        from = at;
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    whole.push_str(&text[from..]);
    Cow::Owned(whole)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptClass {
    Spaceless,
    /// Korean has spaces, but sets its endings behind Latin words and numbers.
    Hangul,
    Digit,
    Letter,
    Mark,
}

impl ScriptClass {
    fn of(c: char) -> Self {
        match c {
            _ if is_spaceless(c) => Self::Spaceless,
            _ if is_hangul_syllable(c) => Self::Hangul,
            _ if c.is_ascii_digit() => Self::Digit,
            _ if c.is_alphanumeric() => Self::Letter,
            _ => Self::Mark,
        }
    }

    /// Returns whether a space belongs between characters of these classes.
    fn is_parted_from(self, other: Self) -> bool {
        let is_east = |it: Self| matches!(it, Self::Spaceless | Self::Hangul);
        let is_other = |it: Self| matches!(it, Self::Digit | Self::Letter);
        is_east(self) && is_other(other) || is_other(self) && is_east(other)
    }
}

/// A day as Chinese and Japanese write it.
pub(crate) struct EastAsianDate {
    /// In bytes.
    pub(crate) length: usize,
    pub(crate) year: Option<u32>,
    pub(crate) month: u32,
    pub(crate) day: u32,
    /// The last day of a range, and where it begins: `4月2-5日`.
    pub(crate) until: Option<(usize, u32)>,
}

/// Behind these a number word is a part of a longer one, or counts nothing: `十二个`, `第二次`.
const NUMERALS: [char; 14] =
    ['第', '一', '二', '两', '三', '四', '五', '六', '七', '八', '九', '十', '百', '千'];

/// What is behind a day.
const DAYS: [char; 3] = ['日', '号', '號'];

/// What is between the days of a range.
const RANGE: [char; 7] = ['-', '–', '—', '~', '～', '至', '到'];

/// Returns the date that opens a text: `2026年4月9日`, `4月9号`, `4月2-5日`.
pub(crate) fn east_asian_date(text: &str) -> Option<EastAsianDate> {
    let part = |from: usize, digits_max: usize, marks: &[char]| {
        let rest = &text[from..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mark = rest[digits..].chars().next().filter(|it| marks.contains(it))?;
        let number = rest[..digits].parse().ok().filter(|_| digits <= digits_max)?;
        Some((from + digits + mark.len_utf8(), number))
    };
    let year = part(0, 4, &['年']);
    let (month_end, month) = part(year.map_or(0, |it| it.0), 2, &['月'])?;
    let first = part(month_end, 2, &DAYS).or_else(|| part(month_end, 2, &RANGE));
    let (first_end, day) = first?;
    let ends_range = text[..first_end].ends_with(RANGE);
    let until = part(first_end, 2, &DAYS).filter(|_| ends_range);
    let (length, until) = match until {
        Some((end, last)) => (end, Some((first_end, last))),
        None => (first_end, None),
    };
    let is_day = |it: u32| (1..=31).contains(&it);
    let is_date = (1..=12).contains(&month) && is_day(day) && until.is_none_or(|it| is_day(it.1));
    let year = year.map(|it| it.1);
    (is_date && ends_range == until.is_some()).then_some(EastAsianDate {
        length,
        year,
        month,
        day,
        until,
    })
}

/// Returns whether this sign is the unit of the number before it.
fn is_unit_sign(c: char) -> bool {
    matches!(c, '%' | '％' | '‰' | '℃' | '°')
}

/// Returns the places of the magnitude and the unit behind a number.
fn words_after_number(rest: &str) -> Vec<Range<usize>> {
    const WORDS_MAX: usize = 2;
    let mut found: Vec<Range<usize>> = Vec::new();
    while found.len() < WORDS_MAX {
        let from = found.last().map_or(0, |it| it.end);
        let word = WORDS.after_numbers.iter().find(|it| rest[from..].starts_with(**it));
        let Some(word) = word else { break };
        found.push(from..from + word.len());
        if !QUANTITIES.magnitudes.contains_key(word) {
            break;
        }
    }
    found
}

/// Returns the places of a day, or of a number with what it counts, that open a text without spaces.
fn spaceless_words(text: &str) -> Option<Vec<Range<usize>>> {
    // `每周一次` is once a week, `上周一直` no Monday.
    let goes_on = |day: &str| text[day.len()..].starts_with(['次', '直', '共', '起']);
    if let Some(day) = WORDS.days.iter().find(|it| text.starts_with(**it) && !goes_on(it)) {
        return Some(std::iter::once(0..day.len()).collect());
    }
    let number = WORDS.numbers.iter().find(|it| text.starts_with(**it))?.len();
    let behind = words_after_number(&text[number..]);
    let behind = behind.into_iter().map(|it| number + it.start..number + it.end);
    let found: Vec<_> = std::iter::once(0..number).chain(behind).collect();
    (found.len() > 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spaces_are_set_where_a_script_without_them_meets_another_one() {
        for (text, expected) in [
            ("转录后用LLM分析", "转录后用 LLM 分析"),
            ("插件运行连续3次失败", "插件运行连续 3 次 失败"),
            ("每天4点重启，离线9小时。", "每天 4 点 重启，离线 9 小时。"),
            ("写入MEMORY.md和v3.2版", "写入 MEMORY.md 和 v3.2 版"),
            ("发现两个未知字段", "发现 两 个 未知字段"),
            ("两国和三方", "两国和三方"),
            ("十二个文件第二次", "十二个文件第二次"),
            ("每周一次，上周一直下雨", "每周一次，上周一直下雨"),
            ("推迟到下周日重试", "推迟到下 周日 重试"),
            ("2026年4月9日发布", "2026年4月9日 发布"),
            ("从4月9号开始", "从 4月9号 开始"),
            ("共3万元", "共 3 万 元"),
            ("指出：41%损耗率，29%", "指出：41% 损耗率，29%"),
            ("气温25°C，湿度41%RH", "气温 25°C，湿度 41%RH"),
            ("明天10:00测试，昨日完成", "明天 10:00 测试，昨日 完成"),
            ("4月2-5日在港口", "4月2-5日 在港口"),
            ("合計1.5倍、12時間", "合計 1.5 倍、12 時間"),
            ("`src_文档`里", "`src_文档`里"),
            ("LLM을 3번 실행", "LLM 을 3 번 실행"),
            ("Already spaced: 3 runs — ok", "Already spaced: 3 runs — ok"),
            ("已经 有 空格 3 次", "已经 有 空格 3 次"),
        ] {
            assert_eq!(spaced(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn only_spaces_are_added_and_only_once(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("两个"), Just("3"), Just("年"), Just("月9日"), Just("小时"), Just(" "), Just("LLM"),
                    Just("周日"), Just("，"), Just("万元"), Just("_a"), Just("번"), Just("é"), Just("2026"),
                ],
                0..12,
            )
        ) {
            let text = parts.concat();
            let once = spaced(&text).into_owned();
            let bare = |it: &str| it.replace(' ', "");
            prop_assert_eq!(bare(&once), bare(&text));
            prop_assert_eq!(spaced(&once).into_owned(), once);
        }
    }
}
