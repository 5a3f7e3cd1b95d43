//! How many characters a token has, as the replies of a model have taught. Pure.
//!
//! It differs from model to model and with what is written: English has about four, code and addresses
//! of lines two, other scripts one. What a server says that it read of a request is the best that there
//! is. Until it has said so often enough, what is usual counts.

use crate::store::db::ledger::TokenRatio;

/// What is usual, on average.
pub const DEFAULT_CHARS_PER_TOKEN: f64 = 4.0;

/// What is usual of text that has many addresses.
const DEFAULT_MIN_CHARS_PER_TOKEN: f64 = 3.0;

/// Fewer tokens than this tell nothing: much of them is what a server adds.
const SAMPLE_TOKENS_MIN: u64 = 500;

/// Fewer tokens than this in all have not taught enough.
const RELIABLE_TOKENS_MIN: u64 = 2_000;

/// So many tokens in all, and what is older counts half.
const WINDOW_TOKENS_MAX: u64 = 4_000_000;

/// No token of a text that people write is shorter or longer, on average. A server that says so did not
/// count what it was sent.
const CHARS_PER_TOKEN_RANGE: (f64, f64) = (0.5, 6.0);

/// How much of the way to a longer one the least moves with each reply.
const MIN_RECOVERY_RATE: f64 = 0.05;

/// What is kept back where a text must not be longer than thought.
const SAFETY_FACTOR: f64 = 0.95;

/// Adds what a reply tells: so many characters were read as so many tokens.
pub(super) fn updated_weight(
    known: Option<TokenRatio>,
    chars: u64,
    tokens: u64,
) -> Option<TokenRatio> {
    let Some(seen) = ratio(chars, tokens).filter(|_| tokens >= SAMPLE_TOKENS_MIN) else {
        return known;
    };
    if !(CHARS_PER_TOKEN_RANGE.0..=CHARS_PER_TOKEN_RANGE.1).contains(&seen) {
        return known;
    }
    let Some(TokenRatio { chars: mut before, tokens: mut read, min_chars_per_token: least }) =
        known
    else {
        return Some(TokenRatio { chars, tokens, min_chars_per_token: seen });
    };
    if read >= WINDOW_TOKENS_MAX {
        (before, read) = (before / 2, read / 2);
    }
    let least = if seen < least { seen } else { least + (seen - least) * MIN_RECOVERY_RATE };
    Some(TokenRatio { chars: before + chars, tokens: read + tokens, min_chars_per_token: least })
}

/// Returns how many characters a token has on average.
pub fn average_chars_per_token(known: Option<TokenRatio>) -> f64 {
    if_reliable(known).and_then(|it| ratio(it.chars, it.tokens)).unwrap_or(DEFAULT_CHARS_PER_TOKEN)
}

/// Returns how many characters a token has at the least, as far as that is known.
pub fn min_chars_per_token(known: Option<TokenRatio>) -> f64 {
    // In steps, so that what is cut by it is not cut anew with each reply.
    const STEPS: f64 = 8.0;
    if_reliable(known).map_or(DEFAULT_MIN_CHARS_PER_TOKEN, |it| {
        ((it.min_chars_per_token * SAFETY_FACTOR * STEPS).floor() / STEPS)
            .max(CHARS_PER_TOKEN_RANGE.0)
    })
}

/// Returns how many tokens a text is.
pub fn estimate(chars: u64, chars_per_token: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a length by a few"
    )]
    let tokens = (chars as f64 / chars_per_token).ceil() as u64;
    tokens
}

fn if_reliable(known: Option<TokenRatio>) -> Option<TokenRatio> {
    known.filter(|it| it.tokens >= RELIABLE_TOKENS_MIN)
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
        let known = replies.iter().fold(None, |known, it| updated_weight(known, it.0, it.1));
        assert!(
            (average_chars_per_token(known) - average_is).abs() < 0.01,
            "{replies:?} {}",
            average_chars_per_token(known)
        );
        assert!(
            (min_chars_per_token(known) - least_is).abs() < 0.01,
            "{replies:?} {}",
            min_chars_per_token(known)
        );
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
        let known =
            long.iter().chain(&then).fold(None, |known, it| updated_weight(known, it.0, it.1));
        assert!(
            average_chars_per_token(known) > 3.9 && min_chars_per_token(known) > 3.5,
            "{known:?}"
        );
        assert!(known.unwrap().tokens < 2 * WINDOW_TOKENS_MAX);
    }
}
