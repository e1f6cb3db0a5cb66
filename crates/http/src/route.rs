//! Paths and methods. A route's label is bounded, so that metrics are.

use http::Method;

/// Match of a path and a method: a probe, or a request that is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RouteMatch<'a> {
    /// For whoever watches the process: it wants no key and leaves no line in the log.
    Probe(Probe),
    /// For everybody else: it leaves a line in the log.
    Asked(ApiRoute<'a>),
}

/// Route of the public API, with a label for logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiRoute<'a> {
    /// The description of the API: it wants no key.
    Page(Page),
    /// Endpoint that wants an API key.
    Route(Route<'a>),
}

/// Probe of the process, for load balancers and supervisors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Ready,
}

/// Page that describes the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// `GET /openapi.json`
    OpenApi,
    /// `GET /docs`
    Docs,
}

/// Endpoint of an authenticated caller, with the variable part of its path, not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `POST /v1/chat/completions`
    Completions,
    /// `GET /v1/operations/{idempotency-key}`
    Operation(&'a str),
    /// `POST /v1/operations/{idempotency-key}/cancel`
    Cancel(&'a str),
    /// `GET /v1/wallet`
    Wallet,
    /// `GET /v1/models`
    Models,
    /// `GET /v1/models/{publisher}/{name}`
    Model(&'a str),
}

/// Reason that a request has no route; each has a message that says what to send instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Missing, repeated or malformed `Host`.
    Host,
    /// Unknown path.
    NotFound,
    /// Unknown path that is this one with `/v1` missing or twice, or with a slash at its end.
    Misspelled(&'static str),
    /// Endpoint of OpenAI's that this gateway does not serve.
    NotServed(&'static str),
    /// The path takes these methods only.
    Method(&'static str),
}

impl ApiRoute<'_> {
    /// The name in logs and metrics.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Page(Page::OpenApi) => "/openapi.json",
            Self::Page(Page::Docs) => "/docs",
            Self::Route(Route::Completions) => "/v1/chat/completions",
            Self::Route(Route::Operation(_)) => "/v1/operations/{idempotency-key}",
            Self::Route(Route::Cancel(_)) => "/v1/operations/{idempotency-key}/cancel",
            Self::Route(Route::Wallet) => "/v1/wallet",
            Self::Route(Route::Models) => "/v1/models",
            Self::Route(Route::Model(_)) => "/v1/models/{publisher}/{name}",
        }
    }
}

/// Finds the route of a request.
pub(crate) fn route<'a>(method: &Method, path: &'a str) -> Result<RouteMatch<'a>, NoRoute> {
    let found = find(path).ok_or_else(|| no_route(path))?;
    let (wanted, allowed) = match found {
        RouteMatch::Asked(ApiRoute::Route(Route::Completions | Route::Cancel(_))) => {
            (&[Method::POST][..], "POST")
        }
        // Whatever is got may be asked for without its body, by load balancers too.
        RouteMatch::Asked(
            ApiRoute::Route(Route::Operation(_) | Route::Wallet | Route::Models | Route::Model(_))
            | ApiRoute::Page(Page::OpenApi | Page::Docs),
        )
        | RouteMatch::Probe(Probe::Health | Probe::Ready) => {
            (&[Method::GET, Method::HEAD][..], "GET, HEAD")
        }
    };
    if wanted.contains(method) { Ok(found) } else { Err(NoRoute::Method(allowed)) }
}

/// Route at a path, whatever the method.
fn find(path: &str) -> Option<RouteMatch<'_>> {
    Some(match path {
        "/v1/chat/completions" => RouteMatch::Asked(ApiRoute::Route(Route::Completions)),
        "/v1/wallet" => RouteMatch::Asked(ApiRoute::Route(Route::Wallet)),
        "/v1/models" => RouteMatch::Asked(ApiRoute::Route(Route::Models)),
        "/healthz" => RouteMatch::Probe(Probe::Health),
        "/readyz" => RouteMatch::Probe(Probe::Ready),
        "/openapi.json" => RouteMatch::Asked(ApiRoute::Page(Page::OpenApi)),
        "/docs" => RouteMatch::Asked(ApiRoute::Page(Page::Docs)),
        other => {
            if let Some(key) = segment(other, "/v1/operations/", "") {
                RouteMatch::Asked(ApiRoute::Route(Route::Operation(key)))
            } else if let Some(key) = segment(other, "/v1/operations/", "/cancel") {
                RouteMatch::Asked(ApiRoute::Route(Route::Cancel(key)))
            } else {
                let id = other.strip_prefix("/v1/models/").filter(|id| !id.is_empty())?;
                RouteMatch::Asked(ApiRoute::Route(Route::Model(id)))
            }
        }
    })
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
    if let Some(right) = suggest(path) {
        return NoRoute::Misspelled(right);
    }
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

/// Label of the path that was probably meant: corrects the usual mistakes of a base URL.
fn suggest(path: &str) -> Option<&'static str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let rest = path.strip_prefix("/v1").unwrap_or(path);
    match find(&format!("/v1{rest}"))? {
        RouteMatch::Asked(asked) => Some(asked.label()),
        RouteMatch::Probe(_) => None,
    }
}

/// The one segment between these.
fn segment<'a>(path: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    let segment = path.strip_prefix(prefix)?.strip_suffix(suffix)?;
    (!segment.is_empty() && !segment.contains('/')).then_some(segment)
}

#[cfg(test)]
mod tests {
    use holdfast_wire::openapi;

    use super::*;

    /// One kind after the other, in a chain that no kind can be left out of unnoticed.
    const fn after(found: &RouteMatch<'static>) -> Option<RouteMatch<'static>> {
        let next = match found {
            RouteMatch::Probe(Probe::Health) => return Some(RouteMatch::Probe(Probe::Ready)),
            RouteMatch::Probe(Probe::Ready) => ApiRoute::Page(Page::OpenApi),
            RouteMatch::Asked(ApiRoute::Page(Page::OpenApi)) => ApiRoute::Page(Page::Docs),
            RouteMatch::Asked(ApiRoute::Page(Page::Docs)) => ApiRoute::Route(Route::Completions),
            RouteMatch::Asked(ApiRoute::Route(route)) => ApiRoute::Route(match route {
                Route::Completions => Route::Operation("7f"),
                Route::Operation(_) => Route::Cancel("7f"),
                Route::Cancel(_) => Route::Wallet,
                Route::Wallet => Route::Models,
                Route::Models => Route::Model("a/b"),
                Route::Model(_) => return None,
            }),
        };
        Some(RouteMatch::Asked(next))
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document = openapi::document();
        let mut described = Vec::new();
        for (template, methods) in document["paths"].as_object().unwrap() {
            let path = template.replace("{idempotency-key}", "7f");
            let path = path.replace("{publisher}", "a").replace("{name}", "b");
            for method in methods.as_object().unwrap().keys() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let found = route(&method, &path).unwrap();
                if let RouteMatch::Asked(asked) = &found {
                    assert_eq!(asked.label(), template);
                }
                described.push(format!("{found:?}"));
            }
        }
        let all = std::iter::successors(Some(RouteMatch::Probe(Probe::Health)), after);
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
        assert_eq!(
            post("/v1/chat/completions"),
            Ok(RouteMatch::Asked(ApiRoute::Route(Route::Completions)))
        );
        assert_eq!(get("/v1/chat/completions"), Err(NoRoute::Method("POST")));
        assert_eq!(
            get("/v1/operations/abc"),
            Ok(RouteMatch::Asked(ApiRoute::Route(Route::Operation("abc"))))
        );
        assert_eq!(
            get("/v1/operations/cancel"),
            Ok(RouteMatch::Asked(ApiRoute::Route(Route::Operation("cancel"))))
        );
        assert_eq!(
            post("/v1/operations/abc/cancel"),
            Ok(RouteMatch::Asked(ApiRoute::Route(Route::Cancel("abc"))))
        );
        assert_eq!(get("/v1/operations/abc/cancel"), Err(NoRoute::Method("POST")));
        let model = Route::Model("holdfast/sim-1");
        assert_eq!(get("/v1/models/holdfast/sim-1"), Ok(RouteMatch::Asked(ApiRoute::Route(model))));
        assert_eq!(get("/readyz"), Ok(RouteMatch::Probe(Probe::Ready)));
        assert_eq!(route(&Method::HEAD, "/healthz"), Ok(RouteMatch::Probe(Probe::Health)));
        assert_eq!(post("/healthz"), Err(NoRoute::Method("GET, HEAD")));
        assert_eq!(
            route(&Method::HEAD, "/v1/models"),
            Ok(RouteMatch::Asked(ApiRoute::Route(Route::Models)))
        );
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
        ] {
            assert_eq!(get(nothing), Err(NoRoute::NotFound), "{nothing}");
        }
    }
}
