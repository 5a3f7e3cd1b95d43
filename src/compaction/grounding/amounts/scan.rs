//! Finds the quantities of a text.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    Quantity, QuantityReading,
    dates::{PartialDate, parse_dotted_date},
    decimal::{Decimal, decimal_readings},
    units::MeasureUnit,
};
use crate::{
    memory::atom,
    text::{
        calendar,
        lexicon::{CALENDAR, HEDGING, QUANTITIES},
        scripts,
    },
};

/// Finds the parts of a text that say how many, how much, or when.
pub(in crate::compaction::grounding) fn find_quantities(text: &str) -> Vec<Quantity> {
    let mut scan = QuantityScanner { text, found: Vec::new(), month_before_day: None };
    let mut at = 0;
    // Atoms know the many forms of dates.
    let dates = atom::find_atoms(text);
    let mut dates = dates.iter().filter(|it| it.kind == atom::AtomKind::Date).peekable();
    while at < text.len() {
        if let Some(date) = dates.next_if(|it| it.start <= at)
            && date.start == at
        {
            let named = PartialDate::parse(&date.norm(text));
            let mut readings: Vec<_> = named.map(QuantityReading::Date).into_iter().collect();
            if let Some(named) = named {
                let number = scan.number_before_month(date.start, date.end);
                scan.month_before_day = number.is_some().then_some((date.end, named));
                readings.extend(number);
            }
            scan.push(date.start, date.end, readings, false);
            at = date.end;
            continue;
        }
        at = scan.scan_at(at);
    }
    scan.share_units();
    scan.read_counted_nouns();
    scan.found
}

/// Numbers by their words.
static NUMBERS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let all = QUANTITIES.numbers.values().flatten();
    all.map(|(word, value)| (*word, *value)).collect()
});

/// Words that name a day or a period.
static DAYS: LazyLock<HashMap<&'static str, DayWord>> = LazyLock::new(|| {
    let weekdays = weekdays().map(|(name, day)| (name, DayWord::Weekday(day)));
    let offsets = CALENDAR.relative_days.values().flatten();
    let offsets = offsets.map(|(word, days)| (*word, DayWord::Offset(*days)));
    let steps = CALENDAR.period_steps.values().flatten();
    let steps = steps.map(|(word, step)| (*word, DayWord::Step(*step)));
    weekdays.chain(offsets).chain(steps).collect()
});

/// Returns the names of weekdays in the languages whose relative days are known; in other languages a weekday
/// is checked like a name.
pub(in crate::compaction::grounding) fn weekdays() -> impl Iterator<Item = (&'static str, u32)> {
    calendar::weekdays_of(&["en", "de", "fr", "es", "it", "zh", "ja"])
}

#[derive(Clone, Copy)]
enum DayWord {
    Weekday(u32),
    Offset(i64),
    Step(i64),
}

struct QuantityScanner<'t> {
    text: &'t str,
    found: Vec<Quantity>,
    /// A date, and where it ends: a number right after it may be its day, as in `batch 1 Mar 24`.
    month_before_day: Option<(usize, PartialDate)>,
}

impl QuantityScanner<'_> {
    fn push(
        &mut self,
        start: usize,
        end: usize,
        readings: Vec<QuantityReading>,
        is_ambiguous: bool,
    ) {
        if !readings.is_empty() {
            self.found.push(Quantity {
                start,
                end,
                readings,
                counted_nouns: Vec::new(),
                is_ambiguous,
            });
        }
    }

    fn scan_at(&mut self, at: usize) -> usize {
        let Some(c) = self.text[at..].chars().next() else { return self.text.len() };
        if c.is_ascii_digit() {
            return self.read_number(at);
        }
        if c.is_alphabetic() {
            return self.read_word(at);
        }
        at + c.len_utf8()
    }

    /// Returns the number of a date such as `1 Mar`, if a day may follow: `batch 1 Mar 24`.
    fn number_before_month(&self, start: usize, end: usize) -> Option<QuantityReading> {
        const PREPOSITIONS: [&str; 12] =
            ["on", "since", "until", "by", "from", "to", "am", "seit", "bis", "vom", "le", "el"];
        let before = self.text[..start].trim_end().rsplit(' ').next()?.to_lowercase();
        if before.is_empty() || PREPOSITIONS.contains(&&before[..]) {
            return None;
        }
        let day = self.text[end..].strip_prefix(' ')?;
        let digits = day.bytes().take_while(u8::is_ascii_digit).count();
        let number: u32 = self.text[start..end].split(' ').next()?.parse().ok()?;
        let decimal = Decimal::parse(&number.to_string(), false);
        let reading = QuantityReading::Number(decimal, vec![MeasureUnit::None]);
        (1..=2).contains(&digits).then_some(reading)
    }

    fn word_end(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
    }

    /// Reads digits with their sign, currency, and unit.
    fn read_number(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = at;
        while let Some(byte) = bytes.get(end) {
            let joins = matches!(byte, b'.' | b',' | b':')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if !byte.is_ascii_digit() && !joins {
                break;
            }
            end += 1;
        }
        let run = &self.text[at..end];
        let mut start = at;
        let mut before = self.text[..at].chars().rev();
        let (last, before_last) = (before.next(), before.next());
        let is_boundary = |it: Option<char>| {
            it.is_none_or(|c| (!c.is_alphanumeric() && c != ')') || scripts::is_spaceless(c))
        };
        let negative = matches!(last, Some('-' | '−')) && is_boundary(before_last);
        let mut readings = Vec::new();
        if run.contains(':') {
            let end = self.read_time(start, end, &mut readings);
            self.push(start, end, readings, false);
            return end;
        }
        if let Some(date) = parse_dotted_date(run, bytes.get(end) == Some(&b'.')) {
            readings.push(QuantityReading::Date(date));
        }
        if let Some((_, date)) = self.month_before_day.filter(|it| it.0 + 1 == at)
            && let Ok(day @ 1..=31) = run.parse()
        {
            readings.push(QuantityReading::Date(PartialDate { day: Some(day), ..date }));
        }
        let (ahead, sign) = self.currency_before(at);
        if sign != MeasureUnit::None {
            start = ahead;
        }
        let (after, zeros, unit) = self.read_unit(end, sign != MeasureUnit::None);
        let unit = if unit == MeasureUnit::None { sign } else { unit };
        let uhr = MeasureUnit::of("uhr");
        let half =
            unit == MeasureUnit::Other("am".into()) || unit == MeasureUnit::Other("pm".into());
        if half || unit == uhr {
            let hour: u32 = run.parse().unwrap_or(99);
            let is_pm = unit == MeasureUnit::Other("pm".into());
            if let Some(minutes) = minute_of_day(hour, 0, half.then_some(is_pm)) {
                readings.push(QuantityReading::Time(minutes, half));
            }
        }
        if !half {
            if ["st", "nd", "rd", "th"].iter().any(|it| unit == MeasureUnit::Other((*it).into()))
                && let Ok(day) = run.parse()
            {
                readings.push(QuantityReading::DayOfMonth(day));
            }
            let mut all = decimal_readings(run, negative);
            // `14.800k` does not mean 14,800.
            if zeros == 3 && all.len() > 1 {
                all.remove(0);
            }
            let whole = all.into_iter().map(|it| it.scale_by_ten(zeros));
            readings.extend(whole.map(|it| QuantityReading::Number(it, vec![unit.clone()])));
        }
        // A version.
        if readings.is_empty() {
            readings.push(QuantityReading::Number(Decimal::verbatim(run), vec![unit]));
        }
        self.push(start, after, readings, false);
        after
    }

    /// Reads `6:30`, `14:05 Uhr`, `6:30 PM`.
    fn read_time(&self, at: usize, end: usize, readings: &mut Vec<QuantityReading>) -> usize {
        let run = &self.text[at..end];
        let mut parts = run.split(':');
        let hour = parts.next().and_then(|it| it.parse().ok()).unwrap_or(99);
        let minute = parts.next().and_then(|it| it.parse().ok()).unwrap_or(99);
        let rest = &self.text[end..];
        let word = rest.trim_start_matches([' ', '\u{a0}']);
        let gap = rest.len() - word.len();
        let mut close = end;
        let mut is_pm = None;
        for (name, pm) in [
            ("am", Some(false)),
            ("pm", Some(true)),
            ("a.m", Some(false)),
            ("p.m", Some(true)),
            ("uhr", None),
        ] {
            let starts = word.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name));
            let ends = || word[name.len()..].chars().next();
            if gap <= 1 && starts && ends().is_none_or(|c| !c.is_alphanumeric()) {
                close = end + gap + name.len();
                is_pm = pm;
            }
        }
        match minute_of_day(hour, minute, is_pm) {
            Some(minutes) if parts.next().is_none() => {
                readings.push(QuantityReading::Time(minutes, is_pm.is_some()));
            }
            // A ratio, or a time with seconds.
            _ => {
                let decimal = Decimal::verbatim(run);
                readings.push(QuantityReading::Number(decimal, vec![MeasureUnit::None]));
            }
        }
        close
    }

    fn currency_before(&self, at: usize) -> (usize, MeasureUnit) {
        let head = &self.text[..at];
        let head = head.strip_suffix([' ', '\u{a0}']).unwrap_or(head);
        let cut = head
            .rfind(|c: char| !c.is_ascii_alphabetic())
            .map_or(0, |it| it + head[it..].chars().next().map_or(1, char::len_utf8));
        let word = &head[cut..];
        let sign = head.chars().next_back().map(String::from).unwrap_or_default();
        if word.is_empty() {
            // `HK$71`
            let before = &head[..head.len() - sign.len()];
            let letters = before.trim_end_matches(|c: char| c.is_ascii_uppercase());
            let letters = &before[letters.len()..];
            let whole = MeasureUnit::of(&format!("{}{sign}", letters.to_lowercase()));
            if !letters.is_empty() && whole.is_money() {
                return (before.len() - letters.len(), whole);
            }
            let unit = MeasureUnit::of(&sign);
            if unit.is_money() {
                return (before.len(), unit);
            }
        } else if word.len() == 3 {
            let unit = MeasureUnit::of(&word.to_lowercase());
            if unit.is_money() {
                return (cut, unit);
            }
        }
        (at, MeasureUnit::None)
    }

    /// Reads the magnitude and the unit after a number: where they end, the power of ten, and the unit.
    fn read_unit(&self, at: usize, is_money: bool) -> (usize, i32, MeasureUnit) {
        let token = |from: usize| {
            let rest = &self.text[from..];
            let is_part = |c: char| c.is_alphabetic() || "%°µ/²³€$£¥₹₩₽٪％'".contains(c);
            from + rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        };
        let gap = |from: usize| {
            let rest = &self.text[from..];
            let space =
                rest.chars().next().filter(|it| matches!(it, ' ' | '\u{a0}' | '\u{202f}' | '-'));
            from + space.map_or(0, char::len_utf8)
        };
        let (mut end, mut zeros) = (at, 0);
        let mut from = gap(at);
        let mut glued = from == at;
        let word = &self.text[from..token(from)];
        // `9.7K` and `3M` are magnitudes, `3 m` is a length; nobody writes `3B` for three bytes.
        let letter = ["k", "K", "M", "B"].contains(&word) || (is_money && word == "m");
        if glued && letter {
            zeros = match word {
                "k" | "K" => 3,
                "B" => 9,
                _ => 6,
            };
            end = token(from);
        } else {
            let lower = word.trim_end_matches('.').to_lowercase();
            if let Some(more) = QUANTITIES.magnitudes.get(&lower[..]) {
                zeros = *more;
                end = token(from);
            }
        }
        if zeros > 0 {
            from = gap(end);
            glued = from == end;
        }
        let close = token(from);
        let word = &self.text[from..close];
        // Of `€990/mo` the currency counts.
        if word.is_empty() || (is_money && word.starts_with('/')) {
            return (end, zeros, MeasureUnit::None);
        }
        let mut lower = word.to_lowercase();
        if lower == "per" && self.text[close..].starts_with(" cent") {
            return (close + 5, zeros, MeasureUnit::of("%"));
        }
        // Only the first part is a unit, as in `41%/s`.
        let mut unit = MeasureUnit::of(&lower);
        if unit == MeasureUnit::None
            && let Some((head, _)) = lower.split_once('/')
        {
            let len = head.len();
            unit = MeasureUnit::of(head);
            lower.truncate(len);
        }
        // `5 s` is a duration, `5 S` is not.
        let is_letter = lower.chars().count() == 1 && lower.chars().all(char::is_alphabetic);
        let odd = is_letter && !glued && word.chars().next().is_some_and(char::is_uppercase);
        // `2 g0` is no weight: the letter is part of a name.
        let odd = odd || (!glued && self.text[close..].starts_with(|c: char| c.is_ascii_digit()));
        match unit {
            MeasureUnit::Known(_) if !odd => (close.min(from + lower.len()), zeros, unit),
            _ if lower == "am" || lower == "pm" => (close, zeros, MeasureUnit::Other(lower)),
            _ if glued && zeros == 0 => (close, zeros, MeasureUnit::Other(lower)),
            _ => (end, zeros, MeasureUnit::None),
        }
    }

    /// Reads a word that may be a number or a day.
    fn read_word(&mut self, at: usize) -> usize {
        let end = self.word_end(at);
        let raw = &self.text[at..end];
        // The number of `v2.1` counts in a line; that of an item is checked as an atom.
        if let Some(digits) =
            raw.strip_prefix(['v', 'V']).filter(|it| it.starts_with(|c: char| c.is_ascii_digit()))
        {
            let from = end - digits.len();
            let close = self.read_number(from);
            if let Some(last) = self.found.last_mut() {
                last.is_ambiguous = true;
            }
            return close;
        }
        // That of `Chrome73` as well.
        let letters = raw.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = raw.len() - letters.len();
        if (1..=3).contains(&digits)
            && letters.chars().count() > 1
            && letters.chars().all(char::is_alphabetic)
        {
            let close = self.read_number(end - digits);
            if let Some(last) = self.found.last_mut() {
                last.is_ambiguous = true;
            }
            return close.max(end);
        }
        let word = raw.to_lowercase();
        if let Some(&value) = NUMBERS.get(&word[..]) {
            return self.read_number_word(at, end, value, &word);
        }
        let day_word = DAYS.get(&word[..]).copied();
        if let Some(DayWord::Weekday(day)) = day_word {
            self.push(at, end, vec![QuantityReading::Weekday(day)], false);
            return end;
        }
        let is_noun = raw == "Morgen" || raw == "Gestern";
        if let Some(DayWord::Offset(offset)) = day_word
            && !is_noun
        {
            let is_ambiguous = CALENDAR.ambiguous_days.contains(&&word[..]);
            self.push(at, end, vec![QuantityReading::DayOffset(offset)], is_ambiguous);
            return end;
        }
        if let Some(DayWord::Step(step)) = day_word
            && self.text[end..].starts_with(' ')
        {
            let close = self.word_end(end + 1);
            let what = MeasureUnit::of(&self.text[end + 1..close].to_lowercase());
            if let MeasureUnit::Known(unit) = what
                && ["week", "month", "year"].iter().any(|it| what == MeasureUnit::of(it))
            {
                self.push(at, close, vec![QuantityReading::Step(step, unit)], false);
                return close;
            }
            return end;
        }
        let named =
            raw.starts_with(char::is_uppercase) && (raw.chars().count() > 3 || raw == "May");
        // At the start of a sentence, `May` and `March` may be other words.
        let opens = self.text[..at].trim_end().is_empty()
            || self.text[..at].trim_end().ends_with(['.', ':', '!', '?', ';']);
        if named
            && !(opens && ["May", "March"].contains(&raw))
            && let Some(month) = calendar::month_number(&word)
        {
            self.push(at, end, vec![QuantityReading::Month(month)], false);
        }
        end
    }

    /// Reads a number word that ends at `end`, such as "twenty-one million", and returns where it ends.
    fn read_number_word(&mut self, at: usize, end: usize, value: u32, word: &str) -> usize {
        let mut value = value;
        let mut close = end;
        if value >= 20 && self.text[end..].starts_with('-') {
            let next = self.word_end(end + 1);
            let ones = self.text[end + 1..next].to_lowercase();
            let ones = NUMBERS.get(&ones[..]).copied();
            let ones = ones.or((self.text[end + 1..next].eq_ignore_ascii_case("one")).then_some(1));
            if let Some(ones) = ones.filter(|it| *it < 10) {
                value += ones;
                close = next;
            }
        }
        let (after, zeros, unit) = self.read_unit(close, false);
        let decimal = Decimal::parse(&value.to_string(), false).scale_by_ten(zeros);
        let mut readings = vec![QuantityReading::Number(decimal, vec![unit.clone()])];
        if unit == MeasureUnit::of("uhr")
            && let Some(minutes) = minute_of_day(value, 0, None)
        {
            readings.push(QuantityReading::Time(minutes, false));
        }
        let is_ambiguous =
            QUANTITIES.ambiguous_numbers.contains(&word) && unit == MeasureUnit::None;
        self.push(at, after, readings, is_ambiguous);
        after
    }

    /// Reads what the numbers count.
    fn read_counted_nouns(&mut self) {
        const WORDS: usize = 4;
        const STEM: usize = 4;
        /// `127 follow up items` are items.
        const PARTICLES: [&str; 3] = ["up", "off", "out"];
        let stops: Vec<usize> = self.found.iter().skip(1).map(|it| it.start).collect();
        for (at, quantity) in self.found.iter_mut().enumerate() {
            let unit = quantity.readings.iter().find_map(|it| match it {
                QuantityReading::Number(_, units) => Some(units.iter().find_map(MeasureUnit::name)),
                _ => None,
            });
            let Some(unit) = unit else { continue };
            if let Some(unit) = unit {
                quantity.counted_nouns.push(unit.to_owned());
                continue;
            }
            let stop = stops.get(at).copied().unwrap_or(self.text.len());
            let rest = &self.text[quantity.end.min(stop)..stop];
            if !rest.starts_with([' ', '\u{a0}']) {
                continue;
            }
            for word in rest.split(' ').skip(1).take(WORDS) {
                let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
                let lower = bare.to_lowercase();
                if PARTICLES.contains(&&lower[..]) {
                    continue;
                }
                let counts = lower.chars().count() > 2
                    && lower.chars().all(char::is_alphabetic)
                    && !HEDGING.stop_words.contains(&&lower[..]);
                if !counts || !word.starts_with(char::is_alphanumeric) {
                    break;
                }
                quantity.counted_nouns.push(lower.chars().take(STEM).collect());
                if bare.len() < word.len() {
                    break;
                }
            }
        }
    }

    /// Gives both numbers of `3 to 5 GB` the unit.
    fn share_units(&mut self) {
        const BETWEEN: &[&str] = &[
            "-",
            "–",
            "—",
            " - ",
            " – ",
            " to ",
            " bis ",
            " and ",
            " und ",
            " or ",
            " oder ",
            ", ",
            "/",
            " x ",
            " à ",
            ", and ",
            " & ",
            " auf den ",
            " bis zum ",
            " to the ",
            " until ",
            " au ",
            " al ",
        ];
        for at in 1..self.found.len() {
            if BETWEEN.contains(&self.between(at)) {
                self.share_month_after(at);
            }
        }
        for at in (1..self.found.len()).rev() {
            if !BETWEEN.contains(&self.between(at)) {
                continue;
            }
            self.share_month(at);
            let theirs = self.found[at].readings.iter().find_map(|it| match it {
                QuantityReading::Number(_, units) => {
                    units.iter().find(|it| **it != MeasureUnit::None).cloned()
                }
                _ => None,
            });
            let Some(unit) = theirs else { continue };
            for reading in &mut self.found[at - 1].readings {
                if let QuantityReading::Number(_, units) = reading
                    && units == &[MeasureUnit::None]
                {
                    units.push(unit.clone());
                }
            }
        }
    }
}

impl QuantityScanner<'_> {
    /// Returns the text between a quantity and the one before it, without the dot of an ordinal number: `20. und 21. Mai`.
    fn between(&self, at: usize) -> &str {
        let end = self.found[at - 1].end.min(self.found[at].start);
        let between = &self.text[end..self.found[at].start];
        between.strip_prefix('.').filter(|it| it.starts_with(' ')).unwrap_or(between)
    }

    /// Gives the last number of `April 2, 3 and 4` the month.
    fn share_month_after(&mut self, at: usize) {
        let date = self.found[at - 1].readings.iter().find_map(|it| match it {
            QuantityReading::Date(date) if date.day.is_some() => Some(*date),
            _ => None,
        });
        // `On April 2, 3 gauges failed`.
        let behind = self.text[self.found[at].end..].trim_start_matches(' ');
        let counts = behind.starts_with(char::is_lowercase)
            && !["and ", "und ", "or ", "oder "].iter().any(|it| behind.starts_with(it));
        let day = self.found[at].readings.iter().find_map(bare_day).filter(|_| !counts);
        if let (Some(date), Some(day)) =
            (date, day.filter(|it| date.is_some_and(|of| Some(*it) > of.day)))
        {
            let date = PartialDate { day: Some(day), ..date };
            self.found[at].readings.push(QuantityReading::Date(date));
        }
    }

    /// Gives the first number of `2 and 3 May` the month.
    fn share_month(&mut self, at: usize) {
        let date = self.found[at].readings.iter().find_map(|it| match it {
            QuantityReading::Date(date) if date.day.is_some() => Some(*date),
            _ => None,
        });
        let day = self.found[at - 1].readings.iter().find_map(bare_day);
        if let (Some(date), Some(day)) =
            (date, day.filter(|it| date.is_some_and(|of| Some(*it) < of.day)))
        {
            let date = PartialDate { day: Some(day), ..date };
            self.found[at - 1].readings.push(QuantityReading::Date(date));
        }
    }
}

/// Returns the day of a month that a number without a unit may be.
fn bare_day(reading: &QuantityReading) -> Option<u32> {
    match reading {
        QuantityReading::Number(value, units) if units[..] == [MeasureUnit::None] => {
            let day = value.to_small_integer().and_then(|it| u32::try_from(it).ok());
            day.filter(|it| (1..=31).contains(it))
        }
        _ => None,
    }
}

/// Returns the minute of the day of a valid time.
fn minute_of_day(hour: u32, minute: u32, is_pm: Option<bool>) -> Option<u32> {
    let hour = match is_pm {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(pm) => hour % 12 + if pm { 12 } else { 0 },
        None => hour,
    };
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}
