//! The normal forms of numbers and money: equal for two spellings of the same value.

use std::borrow::Cow;

use super::{CURRENCIES, CURRENCY_CODES};

/// Removes thousands separators and lower-cases letters.
pub(super) fn normalize_number(raw: &str) -> Cow<'_, str> {
    let groups = |sep: char| {
        let mut parts = raw.split(sep);
        let head = parts.next().unwrap_or("");
        let mut any = false;
        let tail_ok = parts.all(|part| {
            any = true;
            part.bytes().take_while(u8::is_ascii_digit).count() == 3
        });
        (1..=3).contains(&head.len()) && any && tail_ok
    };
    if raw.contains(',') && groups(',') {
        return Cow::Owned(raw.replace(',', "").to_lowercase());
    }
    lowercase(raw)
}

pub(super) fn normalize_money(raw: &str) -> String {
    let lowered = raw.to_lowercase();
    let code = CURRENCIES.iter().find(|(sign, _)| lowered.contains(sign)).map(|&(_, code)| code);
    let code = code.or_else(|| CURRENCY_CODES.iter().copied().find(|c| lowered.ends_with(c)));
    let code = code.unwrap_or("");
    let amount: String =
        lowered.chars().filter(|c| c.is_alphanumeric() || matches!(c, '.' | ',')).collect();
    let amount = amount.strip_suffix(code).unwrap_or(&amount);
    let digits = amount.trim_end_matches(char::is_alphabetic);
    let magnitude = match &amount[digits.len()..] {
        "thousand" => "k",
        "million" | "mio" | "mm" => "m",
        "billion" | "bn" | "mrd" => "b",
        "trillion" => "tn",
        other => other,
    };
    format!("{code}{}{magnitude}", normalize_number(digits))
}

pub(super) fn lowercase(raw: &str) -> Cow<'_, str> {
    if raw.chars().any(char::is_uppercase) {
        Cow::Owned(raw.to_lowercase())
    } else {
        Cow::Borrowed(raw)
    }
}
