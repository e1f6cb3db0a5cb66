//! The hold: an upper bound of what a request can cost, so that the charge fits into it.
//!
//! Prompt tokens ≤ the smaller of the model's context and UTF-8 bytes × tokens a byte + 16 a
//! message + overhead + pictures. An item without a cap of its own (a recording, a document, a
//! search of the web) makes it the context. Output tokens ≤ the request's bound, else the model's,
//! for each choice; that bound is then sent upstream, which is what makes it true. Each side is
//! priced at the dearest kind and tier that the request can cause, rounded up once.
//!
//! Bytes and not a tokenizer's count: tokenizers differ and change, and a bound may be high but
//! never low. A run that costs more all the same is charged its hold, and the operator bears the
//! shortfall.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::hold::UsageBound;
//! use holdfast_domain::model::Contract;
//! use holdfast_testkit::sample;
//!
//! let contract = Contract::new(sample::model(), 1, 128_000, 4_096);
//! let bound = UsageBound::of(&sample::request("What is a hold?").cost_factors(), &contract);
//! assert_eq!((bound.output_tokens, bound.n), (4_096, 1));
//!
//! // The charge of a run within the bound fits into the hold.
//! let tariff = &sample::priced("2026-01-01T00:00:00Z", 1_000_000).tariff;
//! let hold = bound.hold(tariff).unwrap();
//! assert!(hold.get() >= 4_096);
//! ```

use crate::Micros;
use crate::model::Contract;
use crate::price::{PriceLine, Tariff, UnitPrices};
use crate::request::CostFactors;
use crate::usage::MeterKind;

const MILLION: u128 = 1_000_000;
/// Tokens that the frame of a message may cost at most.
const TOKENS_PER_MESSAGE: u128 = 16;

/// Upper bounds of what a request can use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageBound {
    /// Prompt tokens, at most.
    pub prompt_tokens: u64,
    /// Output tokens of each choice, at most. Sent upstream, so that it is true.
    pub output_tokens: u64,
    /// Choices.
    pub n: u32,
    /// Pictures in the prompt, exactly.
    pub images: u64,
    /// True if prompt tokens may be of audio.
    pub audio_input: bool,
    /// True if output tokens may be of audio.
    pub audio_output: bool,
}

impl UsageBound {
    /// Bounds a request under a model's contract. An item without a cap of its own makes the prompt
    /// as long as the context: a recording, a document, what is found on the web, and a picture
    /// unless the contract caps it.
    #[must_use]
    pub fn of(facts: &CostFactors, contract: &Contract) -> Self {
        // In 128 bits, rounded up: neither a huge prompt nor a small ratio makes the bound too low.
        let text = u128::from(facts.prompt_bytes)
            .saturating_mul(u128::from(contract.prompt_tokens_per_byte_millionths))
            .div_ceil(MILLION);
        let frames = u128::from(facts.messages).saturating_mul(TOKENS_PER_MESSAGE);
        // One picture without a cap alone fills the context.
        let image = contract.image_tokens.unwrap_or(contract.context_tokens);
        let images = u128::from(facts.images).saturating_mul(u128::from(image));
        let overhead = contract.overhead_tokens(facts.tools > 0);
        let tokens =
            [frames, images, u128::from(overhead)].into_iter().fold(text, u128::saturating_add);
        let is_capped = facts.recordings == 0 && facts.files == 0 && !facts.searches;
        // Without a cap there is no count: the context, which is the smaller one below, bounds it.
        let tokens = if is_capped { u64::try_from(tokens).unwrap_or(u64::MAX) } else { u64::MAX };
        Self {
            prompt_tokens: tokens.min(contract.context_tokens),
            // The bound that is sent upstream: without one a model could write up to its context.
            output_tokens: facts.max_output_tokens.unwrap_or(contract.max_output_tokens),
            n: facts.n,
            images: facts.images,
            audio_input: facts.recordings > 0,
            audio_output: facts.audio_output,
        }
    }

    /// Output tokens of all choices together.
    #[must_use]
    pub fn all_output_tokens(&self) -> u64 {
        self.output_tokens.saturating_mul(u64::from(self.n))
    }

    /// Amount to hold: the cost at the dearest of the tiers that the prompt can reach, rounded up once. `None`
    /// if it does not fit into an amount: no wallet has that much.
    #[must_use]
    pub fn hold(&self, tariff: &Tariff) -> Option<Micros> {
        let millionths = sum(&self.lines(tariff));
        i64::try_from(millionths.div_ceil(MILLION)).ok().map(Micros::new)
    }

    /// Lines that the hold is the sum of, each of the dearest kind that its units can turn out to be: those of
    /// the dearest tier.
    #[must_use]
    pub fn lines(&self, tariff: &Tariff) -> [PriceLine; 4] {
        let first = self.lines_at(tariff.rates(), self.prompt_tokens);
        // Not the highest tier alone: nothing says that it is dearer than the one below it.
        let tiers = tariff.reachable(self.prompt_tokens);
        let all = tiers.map(|(rates, prompt_tokens)| self.lines_at(rates, prompt_tokens));
        all.max_by_key(|lines| sum(lines)).unwrap_or(first)
    }

    /// Lines with each side at the dearest kind that the request can cause.
    fn lines_at(&self, rates: &UnitPrices, prompt_tokens: u64) -> [PriceLine; 4] {
        let prompt_kind = if self.audio_input { MeterKind::AudioInput } else { MeterKind::Input };
        let output_kind =
            if self.audio_output { MeterKind::AudioOutput } else { MeterKind::Output };
        let line = |kinds: &[MeterKind], units| {
            let (kind, rate) = rates.dearest(kinds);
            PriceLine { kind, units, rate }
        };
        // What the provider's cache makes of the prompt is known afterwards only.
        let prompt = [prompt_kind, MeterKind::Input, MeterKind::CachedInput, MeterKind::CacheWrite];
        let output = [output_kind, MeterKind::Output, MeterKind::Reasoning];
        [
            line(&prompt, prompt_tokens),
            line(&output, self.all_output_tokens()),
            line(&[MeterKind::Image], self.images),
            line(&[MeterKind::Request], 1),
        ]
    }
}

fn sum(lines: &[PriceLine]) -> u128 {
    lines.iter().map(PriceLine::millionths).fold(0, u128::saturating_add)
}
