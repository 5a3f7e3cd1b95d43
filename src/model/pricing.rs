//! What tokens cost.
//!
//! Prices stand in `config/pricing.yaml`, each with the day on which it was looked up; a person's own
//! `pricing.yaml` in the folder of the configuration comes before it, model by model. A model that
//! stands in neither has no price: that is not zero, and under a cap on money it is not called.

use chrono::NaiveDate;
use serde::Deserialize;

use super::TokenUsage;

/// The prices that come with the program.
const BUILT_IN: &str = include_str!("../../config/pricing.yaml");

/// What providers ask for a call in a batch, as a share of the price.
const BATCH_SHARE: f64 = 0.5;

/// A table of prices, the first that fits a model counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pricing(Vec<Price>);

/// What a model costs, in US dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The model's name. One that ends in `*` stands for all names that begin so.
    pub model: String,
    /// Input that is in no cache.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the provider's cache; a share of `input` where it is not given.
    pub cache_read: Option<f64>,
    /// Input put into the provider's cache for an hour.
    pub cache_write: Option<f64>,
    /// What holds for all tokens of a call that reads more than so many.
    pub long: Option<LongPrice>,
    /// What share of all this a call in a batch costs; a half where it is not given.
    pub batch: Option<f64>,
    /// When this was so.
    pub date: NaiveDate,
}

/// What a long call costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// How many tokens a call may read before this holds.
    pub over: u64,
    /// Like those of [`Price`].
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache.
    pub cache_read: Option<f64>,
    /// Input put into the cache.
    pub cache_write: Option<f64>,
}

/// What one token of each kind costs, times a million.
struct TokenRates {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

/// A table that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PricingError {
    /// It is no such table.
    #[error("it is no table of prices: {0}")]
    Form(#[from] serde_yaml::Error),
    /// A price that is none.
    #[error("the price of `{0}` is no amount of money")]
    Amount(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    prices: Vec<Price>,
}

impl Pricing {
    /// Reads the built-in table, and before it a person's own.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the person's.
    pub fn read(own: Option<&str>) -> Result<Self, PricingError> {
        let mut prices = own.map_or_else(|| Ok(Vec::new()), parse_table)?;
        prices.extend(parse_table(BUILT_IN)?);
        Ok(Self(prices))
    }

    /// Returns what a model costs.
    pub fn of(&self, model: &str) -> Option<&Price> {
        // Routers put the provider's name before the model's.
        let bare = model.rsplit('/').next().unwrap_or(model);
        let fits = |it: &&Price| match it.model.strip_suffix('*') {
            Some(start) => model.starts_with(start) || bare.starts_with(start),
            None => it.model == model || it.model == bare,
        };
        self.0.iter().find(fits)
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

    /// Returns what a call may cost at most, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "no call has 2^52 tokens")]
    pub fn worst_case_cost(&self, input_tokens: u64, output_tokens: u64) -> f64 {
        let rates = self.rates(input_tokens);
        let dearest = rates.cache_write.max(rates.input);
        (input_tokens as f64 * dearest + output_tokens as f64 * rates.output) / 1e6
    }

    /// Returns what share of the price a call costs.
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
    fn a_persons_prices_come_first() {
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
    fn a_long_call_pays_its_own_price_on_all_tokens() {
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
