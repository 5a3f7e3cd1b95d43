//! How many characters a token has, learned from the replies of a model. Pure.
//!
//! The ratio depends on the model and the text: about four for English, two for code and line
//! addresses, one for other scripts. The server's own count of the tokens it read is the best
//! source. Until there are enough counts, the usual ratio applies.

use crate::store::db::ledger::TokenRatio;

/// The usual average.
pub const DEFAULT_CHARS_PER_TOKEN: f64 = 4.0;

/// The usual ratio of text with many line addresses.
const DEFAULT_MIN_CHARS_PER_TOKEN: f64 = 3.0;

/// Shorter calls are ignored, because much of their count is what the server adds.
const SAMPLE_TOKENS_MIN: u64 = 500;

/// With fewer tokens in total, the usual ratio applies.
const RELIABLE_TOKENS_MIN: u64 = 2_000;

/// At this total, earlier counts are halved, so that recent calls count more.
const WINDOW_TOKENS_MAX: u64 = 4_000_000;

/// The possible range for text that people write. A server that reports a count outside it did not
/// count what it received.
const CHARS_PER_TOKEN_RANGE: (f64, f64) = (0.5, 6.0);

/// The share of the distance by which the minimum rises towards a higher ratio with each reply.
const MIN_RECOVERY_RATE: f64 = 0.05;

/// A margin, because a text must not have more tokens than estimated.
const SAFETY_FACTOR: f64 = 0.95;

/// Updates the ratio with one call, in which the model read `chars` characters as `tokens` tokens.
pub(super) fn updated_ratio(
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

/// Returns the average number of characters per token.
pub fn average_chars_per_token(known: Option<TokenRatio>) -> f64 {
    if_reliable(known).and_then(|it| ratio(it.chars, it.tokens)).unwrap_or(DEFAULT_CHARS_PER_TOKEN)
}

/// Returns the lowest expected number of characters per token.
pub fn min_chars_per_token(known: Option<TokenRatio>) -> f64 {
    // Rounded to steps, so that texts are not cut into other parts after each reply.
    const STEPS: f64 = 8.0;
    if_reliable(known).map_or(DEFAULT_MIN_CHARS_PER_TOKEN, |it| {
        ((it.min_chars_per_token * SAFETY_FACTOR * STEPS).floor() / STEPS)
            .max(CHARS_PER_TOKEN_RANGE.0)
    })
}

/// Returns how many tokens a text has.
pub fn estimate(chars: u64, chars_per_token: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a text length divided by a small number"
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
    fn check(replies: &[(u64, u64)], average: f64, minimum: f64) {
        let known = replies.iter().fold(None, |known, it| updated_ratio(known, it.0, it.1));
        assert!(
            (average_chars_per_token(known) - average).abs() < 0.01,
            "{replies:?} {}",
            average_chars_per_token(known)
        );
        assert!(
            (min_chars_per_token(known) - minimum).abs() < 0.01,
            "{replies:?} {}",
            min_chars_per_token(known)
        );
    }

    #[test]
    fn the_ratio_follows_the_replies() {
        check(&[], 4.0, 3.0);
        // Too few tokens.
        check(&[(3000, 1500)], 4.0, 3.0);
        check(&[(100, 499), (100, 499), (100, 499), (100, 499), (100, 499)], 4.0, 3.0);
        check(&[(20_000, 10_000)], 2.0, 1.875);
        check(&[(20_000, 10_000), (40_000, 10_000)], 3.0, 1.875);
        // Impossible ratios are ignored.
        check(&[(20_000, 10_000), (90_000, 1000), (1000, 90_000)], 2.0, 1.875);
    }

    #[test]
    fn old_replies_count_less() {
        let long = [(8_000_000, 4_000_000)];
        let then = [(4_000_000, 1_000_000); 60];
        let known =
            long.iter().chain(&then).fold(None, |known, it| updated_ratio(known, it.0, it.1));
        assert!(
            average_chars_per_token(known) > 3.9 && min_chars_per_token(known) > 3.5,
            "{known:?}"
        );
        assert!(known.unwrap().tokens < 2 * WINDOW_TOKENS_MAX);
    }
}
