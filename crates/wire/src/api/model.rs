//! Models as callers may use them: OpenAI's list, with what a model promises and costs.

use holdfast_domain::Timestamp;
use holdfast_domain::model::{Contract, ModelAlias};
use holdfast_domain::price::{PriceVersion, Tier, UnitPrices};
use serde::Serialize;

use super::UnitPricesView;

/// The models that an API key may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelListView {
    object: &'static str,
    data: Vec<ModelView>,
}

impl ModelListView {
    /// Lists these models.
    #[must_use]
    pub const fn of(data: Vec<ModelView>) -> Self {
        Self { object: "list", data }
    }
}

/// A model under its contract, with its prices in each currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelView {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: String,
    context_length: u64,
    max_output_tokens: u64,
    contract: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    prices: Vec<PriceView>,
}

impl ModelView {
    /// Shows a model under its contract with the prices in force. `created` is required by OpenAI's shape; any
    /// moment that does not change will do.
    #[must_use]
    pub fn of(
        contract: &Contract,
        aliases: &[ModelAlias],
        created: Timestamp,
        prices: &[PriceVersion],
    ) -> Self {
        let id = contract.model.as_str();
        // Callers know publishers and no providers: OpenAI's member tells the part before the slash.
        let publisher = id.split_once('/').map_or(id, |(publisher, _)| publisher);
        Self {
            id: id.to_owned(),
            object: "model",
            created: created.as_seconds(),
            owned_by: publisher.to_owned(),
            context_length: contract.context_tokens,
            max_output_tokens: contract.max_output_tokens,
            contract: contract.version,
            aliases: aliases.iter().map(ModelAlias::to_string).collect(),
            prices: prices.iter().map(PriceView::of).collect(),
        }
    }
}

/// Prices of a model in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PriceView {
    currency: String,
    effective_from: Option<String>,
    price_version: String,
    #[serde(flatten)]
    rates: AllUnitPricesView,
    tiers: Vec<TierView>,
}

/// Every rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct AllUnitPricesView {
    micros_per_million: UnitPricesView,
    micros_each: UnitPricesView,
}

/// Prices of requests whose prompts are longer than a threshold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct TierView {
    above_prompt_tokens: u64,
    #[serde(flatten)]
    rates: AllUnitPricesView,
}

impl AllUnitPricesView {
    const fn of(rates: UnitPrices) -> Self {
        Self {
            micros_per_million: UnitPricesView { rates, per_million: true },
            micros_each: UnitPricesView { rates, per_million: false },
        }
    }
}

impl PriceView {
    /// Shows a price version; its name ends with the moment from which it is in force.
    #[must_use]
    pub fn of(price: &PriceVersion) -> Self {
        let tier = |tier: &Tier| TierView {
            above_prompt_tokens: tier.above_prompt_tokens,
            rates: AllUnitPricesView::of(tier.rates),
        };
        let effective_from =
            // The name is `<model>/<currency>/<moment>`, and the model's id has a slash of its own: from the end.
            price.id.as_str().rsplit_once('/').map(|(_, moment)| moment.to_owned());
        Self {
            currency: price.currency.to_string(),
            effective_from,
            price_version: price.id.to_string(),
            rates: AllUnitPricesView::of(*price.tariff.rates()),
            tiers: price.tariff.tiers().iter().map(tier).collect(),
        }
    }
}
