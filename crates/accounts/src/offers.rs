//! The offer: models, prices, and the nodes that serve them.
//!
//! Prices are the book's, which has every version that was ever configured, future ones too. Models,
//! their routes and the health of those are what this process knows. Holders see what callers see:
//! no route, and no node.

use holdfast_domain::Currency;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::listing::NodeListing;
use holdfast_domain::admin::offer::ModelOffer;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::PriceVersion;
use holdfast_domain::restore::Restore;

use crate::{Accounts, Principal, Result};

/// Models on offer, for the calling principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModels {
    /// The models; without routes if the principal may not see any.
    pub models: Vec<ModelOffer>,
    /// False if the principal may not see routes.
    pub shows_routes: bool,
    /// False if the principal may not see the operator's cost of a run.
    pub shows_costs: bool,
}

impl Accounts {
    /// The models that this process serves, empty if it serves none, with their routes as far as the principal
    /// may see them.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Forbidden`](crate::AccountsError::Forbidden).
    pub fn models(&self, principal: &Principal) -> Result<OfferedModels> {
        principal.authorize(UseCase::ModelRead)?;
        let mut models = self.offers.as_ref().map(|offers| offers.models()).unwrap_or_default();
        let shows_routes = principal.sees_routes();
        if !shows_routes {
            // Removed here and not hidden by a view: each interface would otherwise have to
            // remember it.
            models.iter_mut().for_each(|model| model.routes.clear());
        }
        let shows_costs = principal.sees_costs();
        if !shows_costs {
            let routes = models.iter_mut().flat_map(|model| &mut model.routes);
            routes.for_each(|route| route.cost = None);
        }
        Ok(OfferedModels { models, shows_routes, shows_costs })
    }

    /// Price versions, the newest of each model and currency first.
    pub async fn prices(
        &self,
        principal: &Principal,
        model: Option<&PublicModelId>,
        currency: Option<Currency>,
    ) -> Result<Vec<PriceVersion>> {
        principal.authorize(UseCase::PriceRead)?;
        let mut prices = self.book.price_versions().await?;
        prices.retain(|price| {
            let is_of_model = model.is_none_or(|model| price.id.model() == Some(model.as_str()));
            is_of_model && currency.is_none_or(|currency| currency == price.currency)
        });
        Ok(prices)
    }

    /// The nodes whose names are in the book, and whether each is alive.
    pub async fn nodes(&self, principal: &Principal) -> Result<Vec<NodeListing>> {
        principal.authorize(UseCase::NodeRead)?;
        Ok(self.book.nodes().await?)
    }

    /// The restore whose window is open: until its end unknown request keys are refused.
    pub async fn restore_window(&self, principal: &Principal) -> Result<Option<Restore>> {
        principal.authorize(UseCase::NodeRead)?;
        Ok(self.book.open_window().await?)
    }
}
