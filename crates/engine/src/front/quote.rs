//! Quotes: the hold of a request that is not sent, with its price lines.
//!
//! A quote passes the checks of admission in their order and with their refusals, and ends before a claim would be
//! made. It reads only memory, binds no key, takes no permit of a route and promises no hold: funds, limits and
//! prices are judged anew with the claim.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::Micros;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::{PriceLine, PriceVersion};
use holdfast_domain::private::Private;
use holdfast_wire::chat::request::BadRequest;

use super::Front;
use super::admission::{PricedRequest, PricingTerms};
use super::submit::ParsedBody;
use crate::authentication::Caller;
use crate::failure::RequestFailure;
use crate::request_context::RequestBody;
use crate::serving_config::ServingConfig;

/// A request for the price of a body.
#[derive(Debug)]
pub struct QuoteRequest {
    /// Serving configuration of this request.
    pub serving: Arc<ServingConfig>,
    /// Authenticated caller.
    pub caller: Arc<Caller>,
    /// The body as it came.
    pub body: Private<Bytes>,
    /// The most that may be held, if the caller sets it, or the reason why its value cannot be read.
    pub max_charge: Result<Option<Micros>, Arc<BadRequest>>,
}

/// The hold of a body, and what it is the sum of.
#[derive(Debug, Clone)]
pub struct Quote {
    /// Public model id.
    pub model: PublicModelId,
    /// Version of the model's contract.
    pub contract: u32,
    /// Price in force.
    pub price: PriceVersion,
    /// Amount that a claim would hold now.
    pub hold: Micros,
    /// Lines of the hold, of the dearest of the tiers that the prompt can reach.
    pub lines: [PriceLine; 4],
}

impl Front {
    /// Prices a body.
    ///
    /// # Errors
    ///
    /// The failure by which a completion of this body would be refused before its claim.
    pub(crate) async fn quote(&self, request: QuoteRequest) -> Result<Quote, RequestFailure> {
        let QuoteRequest { serving, caller, body: Private(body), max_charge } = request;
        let parsed = self.parse(&serving, &caller, &body, || ()).await;
        let parsed = parsed.ok_or(RequestFailure::Internal(None))?;
        let (request, alias) = match parsed {
            Ok(ParsedBody { request, alias, .. }) => (request, alias),
            Err(refused) => return Err(self.refusal(&serving, &caller, &body, refused.bad)),
        };
        let terms = PricingTerms { serving: &serving, caller: &caller, max_charge: &max_charge };
        let PricedRequest { model, price, reduced: _, bound, hold } =
            self.price(terms, &RequestBody { request, alias, memory: None, body })?;
        Ok(Quote {
            model: model.contract.model.clone(),
            contract: model.contract.version,
            price: price.clone(),
            hold,
            lines: bound.lines(&price.tariff),
        })
    }
}
