//! Names of attributes and events: the table that the manual has, and that tests hold to the conventions.

/// Attribute of spans or events.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// Name: of the conventions, or `holdfast.`
    pub name: &'static str,
    /// Spans or events that have it.
    pub on: &'static str,
    /// Meaning.
    pub meaning: &'static str,
}

const fn row(name: &'static str, on: &'static str, meaning: &'static str) -> Attribute {
    Attribute { name, on, meaning }
}

pub(super) const METHOD: &str = "http.request.method";
pub(super) const ROUTE: &str = "http.route";
pub(super) const STATUS: &str = "http.response.status_code";
pub(super) const PATH: &str = "url.path";
pub(super) const SCHEME: &str = "url.scheme";
pub(super) const CLIENT: &str = "client.address";
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
pub(super) const GEN_AI_PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const FIRST_CHUNK_TIME: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const MODEL: &str = "holdfast.model";
pub(super) const OPERATION_ID: &str = "holdfast.operation.id";
pub(super) const SITUATION: &str = "holdfast.situation";
pub(super) const OUTCOME: &str = "holdfast.outcome";
pub(super) const REPLAYED: &str = "holdfast.replayed";
pub(super) const PROVIDER_ROUTE: &str = "holdfast.route";
pub(super) const CLASS: &str = "holdfast.class";
pub(super) const ERROR_CODE: &str = "holdfast.error.code";
pub(super) const HUNG_UP: &str = "holdfast.hung_up";
pub(super) const REQUEST_ID: &str = "holdfast.request.id";
pub(super) const MICROS: &str = "holdfast.micros";
pub(super) const CURRENCY: &str = "holdfast.currency";

pub(super) const HOLD: &str = "hold";
pub(super) const DISPATCH: &str = "dispatch";
pub(super) const FIRST_CHUNK: &str = "first_chunk";
pub(super) const SETTLE: &str = "settle";

/// Every attribute, in the order of the manual.
pub const ATTRIBUTES: &[Attribute] = &[
    row(METHOD, "SERVER", "method; `_OTHER` for one that HTTP does not define"),
    row(ROUTE, "SERVER", "route, with names instead of variable parts"),
    row(STATUS, "SERVER", "status, if an answer was begun"),
    row(PATH, "SERVER", "the route again, or `REDACTED`: paths may hold keys"),
    row(SCHEME, "SERVER", "`http`: TLS ends before the gateway"),
    row(CLIENT, "SERVER", "address of the client, as the log has it"),
    row(ERROR_TYPE, "SERVER, CLIENT", "code of a 5xx or a broken stream; class of a failed call"),
    row(GEN_AI_OPERATION, "CLIENT", "`chat`"),
    row(GEN_AI_PROVIDER, "CLIENT", "provider, by the conventions"),
    row(REQUEST_MODEL, "CLIENT", "model of the route"),
    row(REQUEST_STREAM, "CLIENT", "`true` if a stream is requested from the provider"),
    row(RESPONSE_ID, "CLIENT", "id of an answered call's completion, as callers see it"),
    row(
        RESPONSE_MODEL,
        "CLIENT",
        "model of an answered call's completion, as callers see it: its public id",
    ),
    row(FINISH_REASONS, "CLIENT", "reasons for which the choices ended"),
    row(FIRST_CHUNK_TIME, "CLIENT", "seconds from the dispatch to the first piece of a stream"),
    row(INPUT_TOKENS, "CLIENT", "prompt tokens, as the provider reports them"),
    row(CACHE_READ, "CLIENT", "those from the provider's cache"),
    row(CACHE_CREATION, "CLIENT", "those written to it"),
    row(OUTPUT_TOKENS, "CLIENT", "completion tokens, as the provider reports them"),
    row(REASONING_TOKENS, "CLIENT", "those of reasoning"),
    row(MODEL, "SERVER, CLIENT", "public id of the model; of a refused request the requested one"),
    row(OPERATION_ID, "SERVER, CLIENT", "operation, once its key is bound"),
    row(SITUATION, "SERVER, CLIENT", "situation of the operation, as the API shows it"),
    row(OUTCOME, "SERVER, CLIENT", "phase that the operation came to"),
    row(REPLAYED, "SERVER, CLIENT", "`true` if an earlier request had bound the operation"),
    row(PROVIDER_ROUTE, "SERVER, CLIENT", "route of the call; of a request, the last"),
    row(CLASS, "CLIENT", "class of the attempt, as `operation show` has it"),
    row(ERROR_CODE, "SERVER", "code of the error in the answer"),
    row(HUNG_UP, "SERVER", "`true` if the client hung up before the end"),
    row(REQUEST_ID, "SERVER", "`x-request-id`, by which the line in the log is found"),
    row(MICROS, "`hold`, `settle`", "amount held, amount charged"),
    row(CURRENCY, "`hold`, `settle`", "currency of the amount"),
];

/// Every event, with its spans and its meaning.
pub const EVENTS: &[(&str, &str, &str)] = &[
    (HOLD, "SERVER", "the hold is committed"),
    (SETTLE, "SERVER", "the ending is committed, after the span's end if the client hung up"),
    (DISPATCH, "CLIENT", "a byte of the request may leave from now on"),
    (FIRST_CHUNK, "CLIENT", "the first piece of the answer is there"),
];
