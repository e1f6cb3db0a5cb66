//! Admission: all checks before the key of a request is bound. It computes the bound of the request's usage and the
//! hold for that, and takes a permit of the first route.
//!
//! No row is written here, so that a refusal leaves the key as it was. The store judges with the claim, not before,
//! if the wallet has the hold and the API key's limits have room. A quote is the first half of it, and shows the
//! hold of the second.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::conduct::Rebinding;
use holdfast_domain::hold::UsageBound;
use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::{Binding, Claim, ClaimTerms};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::request::{FINGERPRINT_VERSION, Request};
use holdfast_domain::secret::{BodyDigest, Fingerprint};
use holdfast_domain::{ClaimId, Micros};
use holdfast_failpoint::{Fault, is_broken};
use holdfast_wire::chat::request::BadRequest;
use uuid::Uuid;

use super::Front;
use crate::authentication::{BoundRequest, Caller, OwnedBoundRequest, Secrets};
use crate::catalogue::Model;
use crate::failure::RequestFailure;
use crate::options::Options;
use crate::request_context::{PreparedClaim, RequestBody, RequestContext, key_scope};
use crate::routes::RoutePlan;
use crate::runner::may_grow;
use crate::serving_config::{PARSED_INLINE_MAX, ServingConfig};

/// Terms that a request is priced under: whose it is, and what is served at its time.
#[derive(Clone, Copy)]
pub(super) struct PricingTerms<'a> {
    pub(super) serving: &'a ServingConfig,
    pub(super) caller: &'a Caller,
    pub(super) max_charge: &'a Result<Option<Micros>, Arc<BadRequest>>,
}

/// A request that passed every check, with its price.
pub(super) struct PricedRequest<'a> {
    pub(super) model: &'a Arc<Model>,
    pub(super) price: &'a PriceVersion,
    /// The request without the members that the model ignores; `None` if it has none of them.
    pub(super) reduced: Option<Arc<Request>>,
    pub(super) bound: UsageBound,
    pub(super) hold: Micros,
}

impl Front {
    /// Checks a request against suspensions, the models, its bounds and the caller's maximum, in this order, and
    /// prices it. Reads only memory.
    pub(super) fn price<'a>(
        &self,
        PricingTerms { serving, caller, max_charge }: PricingTerms<'a>,
        RequestBody { request, body, .. }: &RequestBody,
    ) -> Result<PricedRequest<'a>, RequestFailure> {
        refuse_suspended(caller)?;
        let model = serving.catalogue.find(&request.model).ok_or_else(|| {
            let now = self.membership.node.now();
            RequestFailure::ModelNotFound {
                meant: serving.suggest_model(caller, request.model.as_str(), now),
            }
        })?;
        if !caller.api_key.grant.allows(&request.model) {
            return Err(RequestFailure::ModelNotAllowed);
        }
        if body.len() > model.body_bytes {
            return Err(RequestFailure::TooLarge { limit: model.body_bytes });
        }
        let price = model.price(caller.currency, self.membership.node.now());
        let price = &price.ok_or(RequestFailure::NoPrice(caller.currency))?.version;
        // Before the checks: a member that is not sent is not refused.
        let reduced = request.without_ignored(&model.contract.ignores);
        let request = reduced.as_ref().unwrap_or(request);
        holdfast_wire::chat::request::check(request, body, &model.contract)
            .map_err(|bad| RequestFailure::BadRequest(Arc::new(bad)))?;
        serving
            .check_support(&request.model, request)
            .map_err(|unsupported| RequestFailure::BadRequest(Arc::new(unsupported.into())))?;
        let mut facts = request.cost_factors();
        let added = serving.added_prompt_bytes(&request.model, request);
        facts.prompt_bytes = facts.prompt_bytes.saturating_add(added);
        let mut bound = UsageBound::of(&facts, &model.contract);
        if may_grow(serving.routes_of(&request.model), request) {
            // Earlier states are looked up only after the claim, so that the hold reckons with the
            // longest prompt that the model can take.
            bound.prompt_tokens = model.contract.context_tokens;
        }
        // A hold beyond the integers is more than any wallet has: the claim is refused for want of funds.
        let hold = bound.hold(&price.tariff).unwrap_or(Micros::MAX);
        let max_charge = max_charge.as_ref();
        let max_charge = max_charge.map_err(|bad| RequestFailure::BadRequest(Arc::clone(bad)))?;
        if let Some(allowed) = max_charge.filter(|allowed| hold > *allowed) {
            return Err(RequestFailure::ChargeLimit { hold, allowed });
        }
        Ok(PricedRequest { model, price, reduced, bound, hold })
    }

    /// Prices a request and makes its claim.
    fn admit(
        &self,
        context: &RequestContext,
        request_body: &RequestBody,
    ) -> Result<Box<PreparedClaim>, RequestFailure> {
        let RequestContext { serving, caller, max_charge, .. } = context;
        let terms = PricingTerms { serving, caller, max_charge };
        let PricedRequest { model, price, reduced, bound, hold } =
            self.price(terms, request_body)?;
        let (request, binding) = (&request_body.request, self.bind(context, request_body, model)?);
        let terms = ClaimTerms {
            wallet: caller.api_key.wallet,
            model: request.model.clone(),
            price: price.clone(),
            hold,
            time: model.timeouts.total.saturating_add(Options::DEADLINE_MARGIN),
        };
        let key = (key_scope(caller), context.request_key);
        let tokens = bound.prompt_tokens.saturating_add(bound.all_output_tokens());
        let lease = self.membership.node.lease();
        let claim = Claim::new(key, binding, terms, ClaimId::from(Uuid::new_v4()), lease)
            .limited(caller.api_key.grant.limits, caller.limits_revision, tokens)
            .after_restore(caller.unknown_until)
            .by_alias(request_body.alias.clone());
        let (written, model) = (Arc::clone(request), Arc::clone(model));
        let (request, written) = match reduced {
            None => (written, None),
            Some(reduced) => (reduced, Some(written)),
        };
        let _memory = request_body.memory.clone();
        Ok(Box::new(PreparedClaim { request, written, model, bound, claim, _memory }))
    }

    /// Prices the claim, and takes a first permit for it: a request that no route can take now is
    /// not bound. Both in boxes, because they are moved from task to task.
    pub(crate) fn prepare_claim(
        &self,
        context: &RequestContext,
        request_body: &RequestBody,
    ) -> Result<(Box<PreparedClaim>, Box<RoutePlan>), RequestFailure> {
        let prepared = self.admit(context, request_body)?;
        // Before a permit: a run that would only be cut for want of memory keeps no route from others.
        if self.runner.is_memory_spent(context.serving.rules.answer_bytes) {
            return Err(RequestFailure::Overloaded);
        }
        let lanes = context.serving.routes_of(&prepared.claim.model);
        let (rules, claim) = (context.serving.rules.cool_down, prepared.claim.owner.claim);
        let route_plan = RoutePlan::reserve_first(lanes, rules, claim, &prepared.request)
            .map_err(RequestFailure::PassedOver)?;
        Ok((prepared, Box::new(route_plan)))
    }

    fn bind(
        &self,
        context: &RequestContext,
        request_body: &RequestBody,
        model: &Model,
    ) -> Result<Binding, RequestFailure> {
        let terms = FingerprintTerms {
            server_secret: self.secrets.first().id(),
            fingerprint_version: FINGERPRINT_VERSION,
            contract: model.contract.version,
        };
        let RequestBody { request, body, .. } = request_body;
        let binding = self.secrets.bind(terms, &context.caller, request, body);
        binding.map(with_fault).ok_or(RequestFailure::Internal(None))
    }

    /// Compares a request with an operation's binding, under the operation's own terms: a large body on a thread
    /// of its own, because it may have to be read again. `request` is `None` if today's rules do not parse it.
    /// `None` if the thread panicked, which is logged. Cancel safe.
    pub(super) async fn compare(
        &self,
        bound: BoundRequest<'_>,
        context: &RequestContext,
        request: Option<&Arc<Request>>,
        body: &Bytes,
    ) -> Option<Comparison> {
        let caller = &context.caller;
        if body.len() <= PARSED_INLINE_MAX {
            return Some(compare(&self.secrets, bound, caller, request.map(|it| &**it), body));
        }
        let bound = OwnedBoundRequest::from(bound);
        let (secrets, caller) = (Arc::clone(&self.secrets), Arc::clone(caller));
        let (request, body) = (request.cloned(), body.clone());
        let work = move || compare(&secrets, bound.as_bound(), &caller, request.as_deref(), &body);
        let (api_key, in_flight) = (context.caller.api_key.id, Arc::clone(&context.in_flight));
        // In a box: few bodies are large.
        Box::pin(self.runner.parsing.run(api_key, in_flight, work)).await
    }
}

/// Binding of a claim; of every request alike if that guard is switched off.
fn with_fault(binding: Binding) -> Binding {
    if !is_broken(Fault::FingerprintForgotten) {
        return binding;
    }
    let (fingerprint, body_digest) =
        (Fingerprint::from_bytes([0; _]), BodyDigest::from_bytes([0; _]));
    Binding { fingerprint, body_digest, ..binding }
}

/// Compares a request with what a key is bound to: the same bytes, else the same fingerprint.
fn compare(
    secrets: &Secrets,
    bound: BoundRequest<'_>,
    caller: &Caller,
    request: Option<&Request>,
    body: &[u8],
) -> Comparison {
    if is_broken(Fault::FingerprintForgotten) {
        return Comparison::Same;
    }
    // Bytes first: a retry is nearly always byte for byte the same, and a digest is cheaper
    // than a fingerprint.
    let digest = secrets.digest(bound.binding.terms.server_secret, caller, body);
    if digest == Some(bound.binding.body_digest) {
        return Comparison::Same;
    }
    match secrets.rebind(bound, caller, request, body) {
        Rebinding::Bound(binding) if binding.is_same_request(bound.binding) => Comparison::Same,
        Rebinding::Bound(_) | Rebinding::Lost => Comparison::Other,
        Rebinding::UnknownVersion(_) => Comparison::Unknown,
    }
}

/// Result of a comparison of a request with the one that a key is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The same request.
    Same,
    /// Another one: a conflict.
    Other,
    /// Cannot be compared here: the row's fingerprint has a version of a later release.
    Unknown,
}

/// Refuses new runs of a suspended key or wallet. A bound key never reaches this check: a refused claim is answered
/// from its row, if there is one.
fn refuse_suspended(caller: &Caller) -> Result<(), RequestFailure> {
    if caller.api_key.suspended_at.is_some() {
        return Err(RequestFailure::ApiKeySuspended);
    }
    if caller.is_wallet_suspended {
        return Err(RequestFailure::WalletSuspended);
    }
    Ok(())
}
