//! Prices of the configuration, pinned in the ledger, and the warning of a start that has passed.
//!
//! A price counts for the requests that are admitted under it. A price that is first seen after its start replaces
//! no charge: the requests in between were charged at the price before, which an operator may not expect.
//!
//! The warning compares with the clock of this process. Charges do not depend on it.

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_cli::failure::CommandFailure;
use holdfast_config::Config;
use holdfast_domain::admin::Directory as _;
use holdfast_domain::ports::PinError;
use holdfast_domain::price::PriceVersion;
use holdfast_domain::{Prices, Timestamp};
use holdfast_engine::Price;
use holdfast_store::Store;
use holdfast_wire::api::moment;

/// Pins the prices of a configuration. A price version that is known keeps its numbers: others are a mistake of the
/// configuration.
pub(super) async fn pin(config: &Config, store: &Store) -> Result<(), CommandFailure> {
    let known = store.price_versions().await.map_err(anyhow::Error::from)?;
    let prices: Vec<_> = config.models.iter().flat_map(|model| &model.prices).collect();
    let versions: Vec<_> = prices.iter().map(|price| price.version.clone()).collect();
    store.pin(&versions).await.map_err(|error| match error {
        // Charges refer to the version by its id: its numbers must never change.
        PinError::Conflict(ref version) => {
            match config.price_mistakes(vec![(version.clone(), &error)]) {
                Some(mistake) => mistake.into(),
                None => CommandFailure::Usage(error.into()),
            }
        }
        PinError::Unavailable(_) => CommandFailure::Failed(error.into()),
    })?;
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_err(anyhow::Error::from)?;
    for late in late(&prices, &known, Timestamp::from_micros(0).after(clock)) {
        tracing::warn!(
            price = %late.version.id,
            "a price starts in the past and is first seen now: requests since its start were charged at the price before"
        );
    }
    Ok(())
}

/// Prices that are first seen after their start, and follow a known one of their model and currency.
fn late<'p>(prices: &[&'p Price], known: &[PriceVersion], now: Timestamp) -> Vec<&'p Price> {
    let follows = |price: &Price, before: &PriceVersion| {
        let start = before.id.effective_from().and_then(moment);
        before.currency == price.version.currency
            && before.id.model() == price.version.id.model()
            && start.is_some_and(|start| start < price.effective_from)
    };
    let is_late = |price: &&&Price| {
        price.effective_from < now
            && known.iter().all(|known| known.id != price.version.id)
            && known.iter().any(|known| follows(price, known))
    };
    prices.iter().filter(is_late).copied().collect()
}

#[cfg(test)]
mod tests {
    use holdfast_domain::Currency;
    use holdfast_domain::model::PublicModelId;
    use holdfast_domain::price::PriceVersionId;
    use holdfast_testkit::sample;

    use super::*;

    fn price(model: &str, currency: Currency, day: &str) -> Price {
        let start = format!("2026-01-{day}T00:00:00Z");
        let id = PriceVersionId::new(&PublicModelId::try_from(model).unwrap(), currency, &start);
        let version = PriceVersion { id, currency, ..sample::price() };
        Price { effective_from: moment(&start).unwrap(), version }
    }

    #[test]
    fn a_price_that_follows_another_is_late_if_its_start_has_passed() {
        let now = moment("2026-01-20T00:00:00Z").unwrap();
        let euro: Currency = "EUR".parse().unwrap();
        let known = price("a/b", Currency::USD, "10").version;
        for (next, is_late) in [
            (price("a/b", Currency::USD, "19"), true),
            (price("a/b", Currency::USD, "20"), false),
            (price("a/b", Currency::USD, "10"), false),
            // An older price is in force at no moment that a request was charged in.
            (price("a/b", Currency::USD, "09"), false),
            // The first price of a model or of a currency replaces none.
            (price("a/b", euro, "19"), false),
            (price("a/c", Currency::USD, "19"), false),
        ] {
            let found = late(&[&next], std::slice::from_ref(&known), now);
            assert_eq!(!found.is_empty(), is_late, "{next:?}");
        }
    }
}
