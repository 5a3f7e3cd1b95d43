//! What tokens cost.
//!
//! Prices are in `config/pricing.yaml`, each with the day on which it was looked up. The user's own
//! `pricing.yaml`, in the folder of the configuration, takes precedence, model by model. A model in
//! neither has no price. That is not zero: under a budget in money it is not called.

use chrono::NaiveDate;
use serde::Deserialize;

use super::TokenUsage;

/// The prices that come with the program.
const BUILT_IN: &str = include_str!("../../config/pricing.yaml");

/// The usual share of the price that a call in a batch costs.
const BATCH_SHARE: f64 = 0.5;

/// A table of prices; the first that matches a model counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pricing(Vec<Price>);

/// The price of a model, in US dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The name of the model. A name that ends in `*` matches all names with this prefix.
    pub model: String,
    /// Input that is not cached.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the provider's cache; by default the price of `input`.
    pub cache_read: Option<f64>,
    /// Input written to the provider's cache for an hour; by default the price of `input`.
    pub cache_write: Option<f64>,
    /// The price of all tokens of a long call.
    pub long: Option<LongPrice>,
    /// The share of these prices that a call in a batch costs; by default a half.
    pub batch: Option<f64>,
    /// When the price was looked up.
    pub date: NaiveDate,
}

/// The price of a long call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// The number of input tokens above which a call is long.
    pub over: u64,
    /// Input that is not cached.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache.
    pub cache_read: Option<f64>,
    /// Input written to the cache.
    pub cache_write: Option<f64>,
}

/// The price of a million tokens of each kind.
struct TokenRates {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

/// Why a price table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PricingError {
    /// It does not have the form of a price table.
    #[error("not a price table: {0}")]
    Form(#[from] serde_yaml::Error),
    /// A price is negative or not a number.
    #[error("the price of `{0}` is not an amount of money")]
    Amount(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    prices: Vec<Price>,
}

impl Pricing {
    /// Reads the user's own table, if any, and then the built-in one.
    pub(crate) fn read(own: Option<&str>) -> Result<Self, PricingError> {
        let mut prices = own.map_or_else(|| Ok(Vec::new()), parse_table)?;
        prices.extend(parse_table(BUILT_IN)?);
        Ok(Self(prices))
    }

    /// Returns the price of a model.
    pub fn of(&self, model: &str) -> Option<&Price> {
        // Routers prefix the name of the model with that of the provider.
        let bare = model.rsplit('/').next().unwrap_or(model);
        let matches = |it: &&Price| match it.model.strip_suffix('*') {
            Some(start) => model.starts_with(start) || bare.starts_with(start),
            None => it.model == model || it.model == bare,
        };
        self.0.iter().find(matches)
    }
}

impl Price {
    /// Returns what a call cost, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "no call has 2^52 tokens")]
    pub fn cost(&self, usage: &TokenUsage) -> f64 {
        let rates = self.rates(usage.input_tokens);
        let fresh = usage
            .input_tokens
            .saturating_sub(usage.cache_read_tokens)
            .saturating_sub(usage.cache_write_tokens);
        let cost = fresh as f64 * rates.input
            + usage.cache_read_tokens as f64 * rates.cache_read
            + usage.cache_write_tokens as f64 * rates.cache_write
            + usage.output_tokens as f64 * rates.output;
        cost / 1e6
    }

    /// Returns the most that a call can cost, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "no call has 2^52 tokens")]
    pub fn worst_case_cost(&self, input_tokens: u64, output_tokens: u64) -> f64 {
        let rates = self.rates(input_tokens);
        let dearest = rates.cache_write.max(rates.input);
        (input_tokens as f64 * dearest + output_tokens as f64 * rates.output) / 1e6
    }

    /// Returns the share of the price that a call costs.
    pub fn batch_factor(&self, in_batch: bool) -> f64 {
        if in_batch { self.batch.unwrap_or(BATCH_SHARE) } else { 1.0 }
    }

    fn rates(&self, input_tokens: u64) -> TokenRates {
        let (input, output, cache_read, cache_write) = match &self.long {
            Some(it) if input_tokens > it.over => {
                (it.input, it.output, it.cache_read, it.cache_write)
            }
            _ => (self.input, self.output, self.cache_read, self.cache_write),
        };
        let (cache_read, cache_write) = (cache_read.unwrap_or(input), cache_write.unwrap_or(input));
        TokenRates { input, output, cache_read, cache_write }
    }
}

fn parse_table(text: &str) -> Result<Vec<Price>, PricingError> {
    let PriceTable { prices } = serde_yaml::from_str(text)?;
    for price in &prices {
        let short = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
        let long = price
            .long
            .iter()
            .flat_map(|it| [Some(it.input), Some(it.output), it.cache_read, it.cache_write]);
        if short
            .into_iter()
            .chain(long)
            .chain([price.batch])
            .flatten()
            .any(|it| !it.is_finite() || it < 0.0)
        {
            return Err(PricingError::Amount(price.model.clone()));
        }
    }
    Ok(prices)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "prices:\n- {model: 'mine*', input: 1.0, output: 10.0, cache_read: 0.1, \
        cache_write: 2.0, date: 2026-01-01}\n";

    #[test]
    fn the_users_prices_take_precedence() {
        let pricing = Pricing::read(Some(OWN)).unwrap();
        let price = pricing.of("mine-2").unwrap();
        let usage = TokenUsage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cache_read_tokens: 500_000,
            cache_write_tokens: 250_000,
        };
        // 0.25 fresh, 0.05 read, 0.5 written, 1.0 out.
        assert!((price.cost(&usage) - 1.8).abs() < 1e-9);
        assert!((price.worst_case_cost(1_000_000, 100_000) - 3.0).abs() < 1e-9);
        assert_eq!(pricing.of("openrouter/mine-2"), Some(price));
        assert_eq!(pricing.of("nobody"), None);
        assert!(
            (price.batch_factor(false) - 1.0).abs() < 1e-9
                && (price.batch_factor(true) - 0.5).abs() < 1e-9
        );
        let own = OWN.replace("input: 1.0", "batch: 0.25, input: 1.0");
        let pricing = Pricing::read(Some(&own)).unwrap();
        assert!((pricing.of("mine").unwrap().batch_factor(true) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_long_call_pays_the_long_price_for_all_tokens() {
        let pricing = Pricing::read(None).unwrap();
        let price = pricing.of("claude-haiku-5-5").unwrap();
        let cost = |input_tokens| price.cost(&TokenUsage { input_tokens, ..TokenUsage::default() });
        assert!((cost(100_000) - 0.01).abs() < 1e-9);
        assert!((cost(200_000) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_table_with_a_mistake_is_refused() {
        for bad in [
            "prices: 3",
            "prices:\n- {model: a, input: -1, output: 1, date: 2026-01-01}",
            "prices:\n- {model: a, input: .nan, output: 1, date: 2026-01-01}",
            "prices:\n- {model: a, inptu: 1, output: 1, date: 2026-01-01}",
        ] {
            assert!(Pricing::read(Some(bad)).is_err(), "{bad}");
        }
    }
}
