//! Facts that spans are built of: what a request, its run and each call know of themselves at their ends.
//! Plain values, and none of them a caller's text. They are made of requests that are not sampled, too,
//! while a run may yet turn out unusual: so they are copied and shared, and formatted in spans alone.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

/// Facts of an operation, which the spans of requests and calls have alike.
#[derive(Debug, Clone, Default)]
pub struct OperationRecord {
    /// Public id of its model.
    pub model: Option<Arc<str>>,
    /// Operation id, once a key is bound.
    pub id: Option<Uuid>,
    /// Situation as callers see it.
    pub situation: Option<&'static str>,
    /// Phase that it came to.
    pub outcome: Option<&'static str>,
}

/// Facts of a request, at the end of its answer.
#[derive(Debug)]
pub struct ServerRecord {
    /// Method, `_OTHER` for one that HTTP does not define.
    pub method: &'static str,
    /// Route with names in place of the variable parts; `None` if no route matches.
    pub route: Option<&'static str>,
    /// Status; `None` if the client hung up before there was one.
    pub status: Option<u16>,
    /// Code of the error that the caller received.
    pub error: Option<&'static str>,
    /// Address of the client.
    pub client: IpAddr,
    /// True if the client hung up before the end.
    pub hung_up: bool,
    /// True if an earlier request had bound the operation.
    pub replayed: bool,
    /// Route of the last attempt.
    pub provider_route: Option<Arc<str>>,
    /// The operation.
    pub operation: OperationRecord,
    /// Moment of its end.
    pub ended: Instant,
}

/// Facts of a run, when its ending is committed.
#[derive(Debug)]
pub struct RunRecord {
    /// The operation.
    pub operation: OperationRecord,
    /// Currency of its amounts.
    pub currency: String,
    /// Moment at which its hold was committed, and the amount in micros.
    pub hold: (Instant, i64),
    /// Moment at which its ending was committed, and the charge in micros if it has one.
    pub settle: (Instant, Option<i64>),
    /// Calls, in their order.
    pub calls: Vec<CallRecord>,
}

/// Facts of a call to a provider.
#[derive(Debug)]
pub struct CallRecord {
    /// Name of the provider by the conventions.
    pub system: &'static str,
    /// Model of the route.
    pub model: Arc<str>,
    /// Name of the route.
    pub route: Arc<str>,
    /// Class of the attempt.
    pub class: Cow<'static, str>,
    /// True if it brought no answer.
    pub has_failed: bool,
    /// True if the answer was requested as a stream.
    pub is_streamed: bool,
    /// Reasons for which its choices ended.
    pub finish_reasons: Vec<&'static str>,
    /// Usage as the provider reported it.
    pub tokens: Option<TokenCounts>,
    /// Moment of its beginning.
    pub began: Instant,
    /// Moment at which a byte may first have left.
    pub dispatched: Option<Instant>,
    /// Moment of the first piece of the answer.
    pub first_chunk: Option<Instant>,
    /// Moment of its end.
    pub ended: Instant,
}

/// Tokens of a call.
#[derive(Debug, Clone, Copy)]
pub struct TokenCounts {
    /// Prompt tokens, cached ones among them.
    pub input: u64,
    /// Prompt tokens from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_creation: u64,
    /// Completion tokens, those of reasoning among them.
    pub output: u64,
    /// Completion tokens of reasoning.
    pub reasoning: u64,
}
