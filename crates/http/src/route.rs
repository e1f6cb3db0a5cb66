//! Routes: a table with a row for each, by which a path and a method become a [`Route`].
//!
//! ```text
//! path ──▶ row ──method──▶ Route       no row: the likely route, or 404
//!           └─ credential, label, line in the log
//! ```
//!
//! Labels have no part of a caller's path, so that the series of metrics are bounded. Never in here: what a
//! route does. The variable part of a path is not decoded.

use http::Method;

/// Route of the public listener, with the variable part of its path as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `POST /v1/chat/completions`
    Completions,
    /// `POST /v1/quotes`
    Quotes,
    /// `GET /v1/operations/{idempotency-key}`
    Operation(&'a str),
    /// `POST /v1/operations/{idempotency-key}/cancel`
    Cancel(&'a str),
    /// `GET /v1/operations/{idempotency-key}/receipt`
    Receipt(&'a str),
    /// `GET /v1/receipts/keys`
    ReceiptKeys,
    /// `GET /v1/wallet`
    Wallet,
    /// Usage of the calling API key.
    Usage(UsageRoute),
    /// `GET /v1/models`
    Models,
    /// `GET /v1/models/{publisher}/{name}`
    Model(&'a str),
    /// `GET /openapi.json`
    OpenApi,
    /// `GET /docs`
    Docs,
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Ready,
}

/// Route by which an API key reads its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageRoute {
    /// `GET /v1/usage`
    Own,
    /// `GET /v1/organization/usage/completions`
    Completions,
    /// `GET /v1/organization/costs`
    Costs,
}

/// Credential that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    /// None: the API's description, and probes.
    Open,
    /// Bearer credential of an API key.
    ApiKey,
}

/// Methods that a path takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Methods {
    Post,
    // Load balancers, too, send requests whose body they do not need.
    GetOrHead,
}

impl Methods {
    fn allow(self, method: &Method) -> bool {
        match self {
            Self::Post => *method == Method::POST,
            Self::GetOrHead => *method == Method::GET || *method == Method::HEAD,
        }
    }

    /// Value of the `Allow` header.
    const fn names(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::GetOrHead => "GET, HEAD",
        }
    }
}

/// Reason that a request has no route; each has a message with the correct request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Missing, repeated or malformed `Host`.
    Host,
    /// Unknown path.
    NotFound,
    /// Unknown path that is this one with `/v1` missing or twice, or with slashes too many.
    Misspelled(&'static str),
    /// Endpoint of OpenAI's that this gateway does not serve.
    NotServed(&'static str),
    /// The path takes these methods only.
    Method(&'static str),
}

/// Row of the table.
struct Row {
    pattern: Pattern,
    methods: Methods,
    auth: Auth,
    label: &'static str,
    is_logged: bool,
    /// Route with the variable part of its path, which is empty if the path has none.
    route: RouteOf,
}

type RouteOf = for<'a> fn(&'a str) -> Route<'a>;

/// Paths of a route.
enum Pattern {
    /// The label itself.
    Exact,
    /// Segment between these.
    Segment(&'static str, &'static str),
    /// All that follows, unless a segment of it is empty: a model's id has a slash, which clients
    /// escape or not.
    Rest(&'static str),
}

/// All routes. The commonest is the first, because rows are tried from the top.
static ROWS: [Row; 16] = [
    endpoint("/v1/chat/completions", Methods::Post, Pattern::Exact, |_| Route::Completions),
    endpoint("/v1/quotes", Methods::Post, Pattern::Exact, |_| Route::Quotes),
    endpoint(
        "/v1/operations/{idempotency-key}",
        Methods::GetOrHead,
        Pattern::Segment("/v1/operations/", ""),
        |key| Route::Operation(key),
    ),
    endpoint(
        "/v1/operations/{idempotency-key}/cancel",
        Methods::Post,
        Pattern::Segment("/v1/operations/", "/cancel"),
        |key| Route::Cancel(key),
    ),
    endpoint(
        "/v1/operations/{idempotency-key}/receipt",
        Methods::GetOrHead,
        Pattern::Segment("/v1/operations/", "/receipt"),
        |key| Route::Receipt(key),
    ),
    page("/v1/receipts/keys", |_| Route::ReceiptKeys),
    endpoint("/v1/wallet", Methods::GetOrHead, Pattern::Exact, |_| Route::Wallet),
    endpoint("/v1/usage", Methods::GetOrHead, Pattern::Exact, |_| Route::Usage(UsageRoute::Own)),
    endpoint("/v1/organization/usage/completions", Methods::GetOrHead, Pattern::Exact, |_| {
        Route::Usage(UsageRoute::Completions)
    }),
    endpoint("/v1/organization/costs", Methods::GetOrHead, Pattern::Exact, |_| {
        Route::Usage(UsageRoute::Costs)
    }),
    endpoint("/v1/models", Methods::GetOrHead, Pattern::Exact, |_| Route::Models),
    endpoint(
        "/v1/models/{publisher}/{name}",
        Methods::GetOrHead,
        Pattern::Rest("/v1/models/"),
        |id| Route::Model(id),
    ),
    page("/openapi.json", |_| Route::OpenApi),
    page("/docs", |_| Route::Docs),
    probe("/healthz", |_| Route::Health),
    probe("/readyz", |_| Route::Ready),
];

const fn endpoint(label: &'static str, methods: Methods, pattern: Pattern, route: RouteOf) -> Row {
    Row { pattern, methods, auth: Auth::ApiKey, label, is_logged: true, route }
}

const fn page(label: &'static str, route: RouteOf) -> Row {
    let (methods, auth) = (Methods::GetOrHead, Auth::Open);
    Row { pattern: Pattern::Exact, methods, auth, label, is_logged: true, route }
}

const fn probe(label: &'static str, route: RouteOf) -> Row {
    // Probes come every few seconds for as long as the process lives: their lines would hide all others.
    Row { is_logged: false, ..page(label, route) }
}

impl Row {
    /// Route of a path that this row has.
    fn find<'a>(&self, path: &'a str) -> Option<Route<'a>> {
        let variable = match self.pattern {
            Pattern::Exact => (path == self.label).then_some("")?,
            Pattern::Segment(prefix, suffix) => {
                let segment = path.strip_prefix(prefix)?.strip_suffix(suffix)?;
                (!segment.is_empty() && !segment.contains('/')).then_some(segment)?
            }
            Pattern::Rest(prefix) => path
                .strip_prefix(prefix)
                .filter(|rest| rest.split('/').all(|segment| !segment.is_empty()))?,
        };
        Some((self.route)(variable))
    }
}

impl Route<'_> {
    fn row(&self) -> &'static Row {
        // By their places: a row too many or too few does not compile, and a test compares the labels.
        let [
            completions,
            quotes,
            operation,
            cancel,
            receipt,
            receipt_keys,
            wallet,
            usage,
            completions_usage,
            costs,
            models,
            model,
            openapi,
            docs,
            health,
            ready,
        ] = &ROWS;
        match self {
            Self::Completions => completions,
            Self::Quotes => quotes,
            Self::Operation(_) => operation,
            Self::Cancel(_) => cancel,
            Self::Receipt(_) => receipt,
            Self::ReceiptKeys => receipt_keys,
            Self::Wallet => wallet,
            Self::Usage(UsageRoute::Own) => usage,
            Self::Usage(UsageRoute::Completions) => completions_usage,
            Self::Usage(UsageRoute::Costs) => costs,
            Self::Models => models,
            Self::Model(_) => model,
            Self::OpenApi => openapi,
            Self::Docs => docs,
            Self::Health => health,
            Self::Ready => ready,
        }
    }

    /// Name in logs and metrics: its path, with names in the place of what is variable.
    pub(crate) fn label(&self) -> &'static str {
        self.row().label
    }

    pub(crate) fn auth(&self) -> Auth {
        self.row().auth
    }

    pub(crate) fn methods(&self) -> Methods {
        self.row().methods
    }

    /// True if a request leaves a line in the log, and counts in the metrics of requests.
    pub(crate) fn is_logged(&self) -> bool {
        self.row().is_logged
    }
}

/// Finds the route of a request.
pub(crate) fn route<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, NoRoute> {
    let found = find(path).ok_or_else(|| no_route(path))?;
    let methods = found.methods();
    if methods.allow(method) { Ok(found) } else { Err(NoRoute::Method(methods.names())) }
}

/// Route at a path, for any method.
fn find(path: &str) -> Option<Route<'_>> {
    ROWS.iter().find_map(|row| row.find(path))
}

/// Endpoints of OpenAI's, by the beginning of their paths after `/v1`.
const NOT_SERVED: [&str; 15] = [
    "/assistants",
    "/audio",
    "/batches",
    "/chat/completions/",
    "/completions",
    "/conversations",
    "/embeddings",
    "/files",
    "/fine_tuning",
    "/images",
    "/moderations",
    "/realtime",
    "/responses",
    "/threads",
    "/vector_stores",
];

fn no_route(path: &str) -> NoRoute {
    let collapsed = collapse(path);
    // Before what is not served: `/v1/chat/completions/` has a slash too many, and is no endpoint of OpenAI's.
    if let Some(right) = suggest(&collapsed).filter(|_right| !has_no_key(path)) {
        return NoRoute::Misspelled(right);
    }
    let path = if collapsed.is_empty() { path } else { &collapsed };
    let rest = path.strip_prefix("/v1").unwrap_or(path);
    let is_in = |endpoint: &&&str| {
        let after = rest.strip_prefix(**endpoint);
        after.is_some_and(|after| {
            after.is_empty() || after.starts_with('/') || endpoint.ends_with('/')
        })
    };
    let endpoint = NOT_SERVED.iter().find(is_in);
    endpoint.map_or(NoRoute::NotFound, |endpoint| NoRoute::NotServed(endpoint))
}

/// Path without empty segments. A base URL that ends with a slash, before a path that begins with one,
/// has two in a row.
fn collapse(path: &str) -> String {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.flat_map(|segment| ["/", segment]).collect()
}

/// Returns `true` for the cancel or the receipt of an empty key: its two slashes are not a mistake of a base URL.
fn has_no_key(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["/operations//cancel", "/operations//receipt"].iter().any(|end| path.ends_with(end))
}

/// Label of the path that was probably meant: corrects the usual mistakes of a base URL.
fn suggest(path: &str) -> Option<&'static str> {
    // Twice at most: a base URL that ends with `/v1`, and a client that adds it.
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let rest = path.strip_prefix("/v1").unwrap_or(path);
    // Pages and probes are never meant: their paths do not begin with `/v1`.
    find(&format!("/v1{rest}")).map(|route| route.label())
}

#[cfg(test)]
mod tests {
    use holdfast_wire::openapi;

    use super::*;

    /// Chain of all routes, one after the other: a match, so that none is left out unnoticed.
    const fn after(found: &Route<'static>) -> Option<Route<'static>> {
        Some(match found {
            Route::Health => Route::Ready,
            Route::Ready => Route::OpenApi,
            Route::OpenApi => Route::Docs,
            Route::Docs => Route::Completions,
            Route::Completions => Route::Quotes,
            Route::Quotes => Route::Operation("7f"),
            Route::Operation(_) => Route::Cancel("7f"),
            Route::Cancel(_) => Route::Receipt("7f"),
            Route::Receipt(_) => Route::ReceiptKeys,
            Route::ReceiptKeys => Route::Wallet,
            Route::Wallet => Route::Usage(UsageRoute::Own),
            Route::Usage(UsageRoute::Own) => Route::Usage(UsageRoute::Completions),
            Route::Usage(UsageRoute::Completions) => Route::Usage(UsageRoute::Costs),
            Route::Usage(UsageRoute::Costs) => Route::Models,
            Route::Models => Route::Model("a/b"),
            Route::Model(_) => return None,
        })
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document = openapi::document();
        let mut described = Vec::new();
        for (template, methods) in document["paths"].as_object().unwrap() {
            let path = template.replace("{idempotency-key}", "7f");
            let path = path.replace("{publisher}", "a").replace("{name}", "b");
            for (method, operation) in methods.as_object().unwrap() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let found = route(&method, &path).unwrap();
                assert_eq!(found.label(), template);
                let is_secured = !operation["security"].as_array().unwrap().is_empty();
                assert_eq!(found.auth() == Auth::ApiKey, is_secured, "{template}");
                described.push(format!("{found:?}"));
            }
        }
        let all = std::iter::successors(Some(Route::Health), after);
        let mut all: Vec<_> = all.map(|found| format!("{found:?}")).collect();
        all.sort_unstable();
        described.sort_unstable();
        assert_eq!(described, all);
    }

    #[test]
    fn the_usual_mistakes_of_a_base_url_are_told_apart_from_nothing() {
        for (mistake, right) in [
            ("/chat/completions", "/v1/chat/completions"),
            ("/v1/chat/completions/", "/v1/chat/completions"),
            ("/v1/v1/chat/completions", "/v1/chat/completions"),
            ("/models", "/v1/models"),
            ("/models/", "/v1/models"),
            ("/v1/models/", "/v1/models"),
            ("/models/a/b", "/v1/models/{publisher}/{name}"),
            ("/v1/wallet/", "/v1/wallet"),
            ("/v1/operations/a/cancel/", "/v1/operations/{idempotency-key}/cancel"),
            ("/v1//chat/completions", "/v1/chat/completions"),
            ("//v1/chat/completions", "/v1/chat/completions"),
            ("/v1/chat//completions", "/v1/chat/completions"),
            ("/v1/chat/completions//", "/v1/chat/completions"),
            ("///v1///chat///completions///", "/v1/chat/completions"),
            ("/v1//v1/chat/completions", "/v1/chat/completions"),
            ("//chat/completions", "/v1/chat/completions"),
            ("/v1//models", "/v1/models"),
            ("/v1/models//", "/v1/models"),
            ("/v1//models/a/b", "/v1/models/{publisher}/{name}"),
            ("/v1/models//a/b", "/v1/models/{publisher}/{name}"),
            ("/v1/models/a//b", "/v1/models/{publisher}/{name}"),
            ("/v1/models/a/b/", "/v1/models/{publisher}/{name}"),
            ("/v1//wallet", "/v1/wallet"),
            ("/v1//quotes", "/v1/quotes"),
            ("/v1//usage/", "/v1/usage"),
            ("/v1//organization/costs", "/v1/organization/costs"),
            ("/v1//operations/a", "/v1/operations/{idempotency-key}"),
            ("/v1/operations//a", "/v1/operations/{idempotency-key}"),
            ("/v1//operations/a//cancel", "/v1/operations/{idempotency-key}/cancel"),
        ] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(route(&method, mistake), Err(NoRoute::Misspelled(right)), "{mistake}");
            }
        }
    }

    #[test]
    fn other_endpoints_of_openai_are_known_and_not_served() {
        for (path, endpoint) in [
            ("/v1/responses", "/responses"),
            ("/v1/responses/resp_1/cancel", "/responses"),
            ("/responses", "/responses"),
            ("/v1/embeddings", "/embeddings"),
            ("/v1/completions", "/completions"),
            ("/v1/images/generations", "/images"),
            ("/v1/chat/completions/chatcmpl_1", "/chat/completions/"),
            ("/v1//embeddings", "/embeddings"),
            ("//v1/responses/", "/responses"),
        ] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(route(&method, path), Err(NoRoute::NotServed(endpoint)), "{path}");
            }
        }
        for nothing in ["/v1/response", "/v1/filesystem", "/v2/embeddings"] {
            assert_eq!(route(&Method::POST, nothing), Err(NoRoute::NotFound), "{nothing}");
        }
    }

    #[test]
    fn paths_and_methods_find_their_route() {
        let get = |path| route(&Method::GET, path);
        let post = |path| route(&Method::POST, path);
        assert_eq!(post("/v1/chat/completions"), Ok(Route::Completions));
        assert_eq!(get("/v1/chat/completions"), Err(NoRoute::Method("POST")));
        assert_eq!(post("/v1/quotes"), Ok(Route::Quotes));
        assert_eq!(get("/v1/operations/abc"), Ok(Route::Operation("abc")));
        assert_eq!(get("/v1/operations/cancel"), Ok(Route::Operation("cancel")));
        assert_eq!(post("/v1/operations/abc/cancel"), Ok(Route::Cancel("abc")));
        assert_eq!(get("/v1/operations/abc/cancel"), Err(NoRoute::Method("POST")));
        assert_eq!(get("/v1/models/holdfast/sim-1"), Ok(Route::Model("holdfast/sim-1")));
        assert_eq!(get("/readyz"), Ok(Route::Ready));
        assert_eq!(route(&Method::HEAD, "/healthz"), Ok(Route::Health));
        assert_eq!(post("/healthz"), Err(NoRoute::Method("GET, HEAD")));
        assert_eq!(route(&Method::HEAD, "/v1/models"), Ok(Route::Models));
        assert_eq!(route(&Method::DELETE, "/v1/wallet"), Err(NoRoute::Method("GET, HEAD")));
        for nothing in [
            "/",
            "/v1",
            "/v1/operations/",
            "/v1/operations/a/b",
            "/v1/operations//cancel",
            "/v1/operations/a/b/cancel",
            "/healthz/",
            "/v2/models",
            "/v1/v1/v1/models",
            "/v1//",
            "//",
            "/v1//operations//cancel/",
            "//healthz",
            "/v1//nothing",
        ] {
            assert_eq!(get(nothing), Err(NoRoute::NotFound), "{nothing}");
        }
    }
}
