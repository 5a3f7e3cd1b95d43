//! How many characters a token has, as the replies of a model have taught. Pure.
//!
//! It differs from model to model and with what is written: English has about four, code and addresses
//! of lines two, other scripts one. What a server says that it read of a request is the best that there
//! is. Until it has said so often enough, what is usual counts.

use crate::store::ledger::Weight;

/// What is usual, on average.
pub const USUAL: f64 = 4.0;

/// What is usual of text that has many addresses.
const USUAL_LEAST: f64 = 3.0;

/// Fewer tokens than this tell nothing: much of them is what a server adds.
const TOKENS_MIN: u64 = 500;

/// Fewer tokens than this in all have not taught enough.
const TAUGHT_MIN: u64 = 2_000;

/// So many tokens in all, and what is older counts half.
const TAUGHT_MAX: u64 = 4_000_000;

/// No token of a text that people write is shorter or longer, on average. A server that says so did not
/// count what it was sent.
const BOUNDS: (f64, f64) = (0.5, 6.0);

/// How much of the way to a longer one the least moves with each reply.
const FORGETS: f64 = 0.05;

/// What is kept back where a text must not be longer than thought.
const CARE: f64 = 0.95;

/// Adds what a reply tells: so many characters were read as so many tokens.
pub(super) fn learned(known: Option<Weight>, chars: u64, tokens: u64) -> Option<Weight> {
    let Some(seen) = ratio(chars, tokens).filter(|_| tokens >= TOKENS_MIN) else { return known };
    if !(BOUNDS.0..=BOUNDS.1).contains(&seen) {
        return known;
    }
    let Some(Weight { chars: mut before, tokens: mut read, least }) = known else {
        return Some(Weight { chars, tokens, least: seen });
    };
    if read >= TAUGHT_MAX {
        (before, read) = (before / 2, read / 2);
    }
    let least = if seen < least { seen } else { least + (seen - least) * FORGETS };
    Some(Weight { chars: before + chars, tokens: read + tokens, least })
}

/// Returns how many characters a token has on average.
pub fn average(known: Option<Weight>) -> f64 {
    taught(known).and_then(|it| ratio(it.chars, it.tokens)).unwrap_or(USUAL)
}

/// Returns how many characters a token has at the least, as far as that is known.
pub fn least(known: Option<Weight>) -> f64 {
    // In steps, so that what is cut by it is not cut anew with each reply.
    const STEPS: f64 = 8.0;
    taught(known)
        .map_or(USUAL_LEAST, |it| ((it.least * CARE * STEPS).floor() / STEPS).max(BOUNDS.0))
}

/// Returns how many tokens a text is.
pub fn of(chars: u64, chars_per_token: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a length by a few"
    )]
    let tokens = (chars as f64 / chars_per_token).ceil() as u64;
    tokens
}

fn taught(known: Option<Weight>) -> Option<Weight> {
    known.filter(|it| it.tokens >= TAUGHT_MIN)
}

#[expect(clippy::cast_precision_loss, reason = "counts of characters")]
fn ratio(chars: u64, tokens: u64) -> Option<f64> {
    (tokens > 0).then(|| chars as f64 / tokens as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(replies: &[(u64, u64)], average_is: f64, least_is: f64) {
        let known = replies.iter().fold(None, |known, it| learned(known, it.0, it.1));
        assert!((average(known) - average_is).abs() < 0.01, "{replies:?} {}", average(known));
        assert!((least(known) - least_is).abs() < 0.01, "{replies:?} {}", least(known));
    }

    #[test]
    fn tokens_are_as_long_as_replies_say() {
        check(&[], 4.0, 3.0);
        // Too little to tell.
        check(&[(3000, 1500)], 4.0, 3.0);
        check(&[(100, 499), (100, 499), (100, 499), (100, 499), (100, 499)], 4.0, 3.0);
        check(&[(20_000, 10_000)], 2.0, 1.875);
        check(&[(20_000, 10_000), (40_000, 10_000)], 3.0, 1.875);
        // What cannot be is not believed.
        check(&[(20_000, 10_000), (90_000, 1000), (1000, 90_000)], 2.0, 1.875);
    }

    #[test]
    fn what_was_long_ago_counts_less() {
        let long = [(8_000_000, 4_000_000)];
        let then = [(4_000_000, 1_000_000); 60];
        let known = long.iter().chain(&then).fold(None, |known, it| learned(known, it.0, it.1));
        assert!(average(known) > 3.9 && least(known) > 3.5, "{known:?}");
        assert!(known.unwrap().tokens < 2 * TAUGHT_MAX);
    }
}
