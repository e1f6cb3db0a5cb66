//! Provider states of earlier turns. The id of a call names the operation that made it, so a look-up needs no index
//! of content; a found state opens only for the credential that sealed it. A request without calls of ours looks
//! none up, nor does one whose routes take no states.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use holdfast_domain::operation::Snapshot;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::request::{Request, Role};
use holdfast_domain::state::{Origin, ProviderState, ProviderStates};
use holdfast_domain::{ErrorChain, OperationId};

use super::Runner;
use crate::authentication::Caller;
use crate::options::Options;
use crate::request_context::{PreparedClaim, RequestContext};
use crate::routes::RouteState;
use crate::seal;

/// Provider states of earlier turns: origin, id of the tool call, and the opaque state.
#[derive(Default)]
pub(crate) struct EarlierStates(Vec<(Origin, String, ProviderState)>);

impl EarlierStates {
    /// Selects the states that came from `origin`. No other provider may see them, because they are
    /// opaque here and may hold content.
    pub(crate) fn of(&self, origin: Option<Origin>) -> ProviderStates {
        let there = self.0.iter().filter(|(from, _, _)| Some(*from) == origin);
        there.map(|(_, id, state)| (id.clone(), state.clone())).collect()
    }
}

/// True if provider states may be added to a request. The caller does not see them, and only the model's context
/// bounds their length, so that a hold must reckon with all of it.
pub(crate) fn may_grow(lanes: &[Arc<RouteState>], request: &Request) -> bool {
    lanes.iter().any(|route_state| route_state.origin().is_some()) && !calls(request).is_empty()
}

impl Runner {
    /// Looks up the provider states of the tool calls whose results a request brings. A state that
    /// was purged, or sealed for another credential, counts as never there.
    pub(crate) async fn earlier(
        &self,
        context: &RequestContext,
        prepared: &PreparedClaim,
    ) -> Result<EarlierStates, Unavailable> {
        let lanes = context.serving.routes_of(&prepared.claim.model);
        if !lanes.iter().any(|route_state| route_state.origin().is_some()) {
            return Ok(EarlierStates::default());
        }
        let calls = calls(&prepared.request);
        let operations: Vec<_> = calls.iter().collect();
        let mut found = Vec::new();
        // In groups: one request must not take all connections that read.
        for some in operations.chunks(Options::LOOK_UPS_AT_ONCE) {
            let loads = some.iter().map(|(operation, _)| self.load_whole(**operation));
            for (snapshot, (_, calls)) in try_join_all(loads).await?.into_iter().zip(some) {
                found.extend(open_states(snapshot, &context.caller, calls));
            }
        }
        Ok(EarlierStates(found))
    }

    /// Loads a snapshot with its whole result, however large. Memory is bounded in other places: by the runs of an
    /// API key, and by the look-ups that each makes at once.
    async fn load_whole(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let snapshot = self.journal.load(operation).await?;
        if snapshot.result.as_ref().is_none_or(|result| result.withheld == 0) {
            return Ok(snapshot);
        }
        let result = self.journal.result(operation).await?;
        Ok(Snapshot { result, ..snapshot })
    }
}

/// Groups the newest tool calls of a conversation by the operation that made them, at most
/// `LOOK_UPS_MAX` operations. Ids of other makers are passed over.
fn calls(request: &Request) -> BTreeMap<OperationId, Vec<[u32; 2]>> {
    let mut calls = BTreeMap::<_, Vec<_>>::new();
    // From the newest turn on: if there are too many, the oldest go without.
    for message in request.messages.iter().rev() {
        let Role::Assistant(reply) = &message.role else { continue };
        for call in &reply.tool_calls {
            let Some((operation, at)) = OperationId::of_tool_call(&call.id) else { continue };
            if calls.len() < Options::LOOK_UPS_MAX || calls.contains_key(&operation) {
                calls.entry(operation).or_default().push(at);
            }
        }
    }
    calls
}

/// Opens the states of these calls, if the caller bears the credential that sealed them; else
/// returns none. A result that does not open is logged, and the turn goes on without it.
fn open_states(
    snapshot: Snapshot,
    caller: &Caller,
    calls: &[[u32; 2]],
) -> Vec<(Origin, String, ProviderState)> {
    let Snapshot { operation: Some(operation), result: Some(result), .. } = snapshot else {
        return Vec::new();
    };
    // The result key is of the credential, so that another one could not open it anyway.
    if result.credential != caller.bearer.id {
        return Vec::new();
    }
    let key = caller.bearer.secret.result_key(operation.id);
    let kept = match seal::open(&key, &operation, &result) {
        Ok(opened) => opened.kept,
        Err(error) => {
            tracing::error!(operation.id = %operation.id, error = %ErrorChain(&error), "a result does not open");
            None
        }
    };
    let Some(mut kept) = kept else { return Vec::new() };
    let state_of = |at: &[u32; 2]| {
        let state = kept.states.remove(at)?;
        Some((kept.origin, operation.id.tool_call_id(*at), state))
    };
    calls.iter().filter_map(state_of).collect()
}
