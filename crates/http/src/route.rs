//! Paths and methods. A route's label is bounded, so that metrics are.

use http::Method;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// For whoever watches the process: it wants no key and leaves no line in the log.
    Probe(Probe),
    /// For everybody else: it leaves a line in the log.
    Asked(Asked<'a>),
}

/// What is asked by others than the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked<'a> {
    /// The description of the API: it wants no key.
    Page(Page),
    /// What a caller with a key wants.
    Route(Route<'a>),
}

/// What is asked about the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Ready,
}

/// How the API is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// `GET /openapi.json`
    OpenApi,
    /// `GET /docs`
    Docs,
}

/// What a caller's request is for.
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

/// Why a request is for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// It does not say for whom it is meant.
    Host,
    /// Nothing is at this path.
    NotFound,
    /// The path takes this method only.
    Method(&'static str),
}

impl Asked<'_> {
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
pub(crate) fn route<'a>(method: &Method, path: &'a str) -> Result<Found<'a>, NoRoute> {
    let found = match path {
        "/v1/chat/completions" => Found::Asked(Asked::Route(Route::Completions)),
        "/v1/wallet" => Found::Asked(Asked::Route(Route::Wallet)),
        "/v1/models" => Found::Asked(Asked::Route(Route::Models)),
        "/healthz" => Found::Probe(Probe::Health),
        "/readyz" => Found::Probe(Probe::Ready),
        "/openapi.json" => Found::Asked(Asked::Page(Page::OpenApi)),
        "/docs" => Found::Asked(Asked::Page(Page::Docs)),
        other => {
            if let Some(key) = segment(other, "/v1/operations/", "") {
                Found::Asked(Asked::Route(Route::Operation(key)))
            } else if let Some(key) = segment(other, "/v1/operations/", "/cancel") {
                Found::Asked(Asked::Route(Route::Cancel(key)))
            } else if let Some(id) = other.strip_prefix("/v1/models/") {
                Found::Asked(Asked::Route(Route::Model(id)))
            } else {
                return Err(NoRoute::NotFound);
            }
        }
    };
    let wanted = match found {
        Found::Asked(Asked::Route(Route::Completions | Route::Cancel(_))) => Method::POST,
        Found::Asked(
            Asked::Route(Route::Operation(_) | Route::Wallet | Route::Models | Route::Model(_))
            | Asked::Page(Page::OpenApi | Page::Docs),
        )
        | Found::Probe(Probe::Health | Probe::Ready) => Method::GET,
    };
    if *method == wanted {
        Ok(found)
    } else if wanted == Method::POST {
        Err(NoRoute::Method("POST"))
    } else {
        Err(NoRoute::Method("GET"))
    }
}

/// The one segment between these.
fn segment<'a>(path: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    let segment = path.strip_prefix(prefix)?.strip_suffix(suffix)?;
    (!segment.is_empty() && !segment.contains('/')).then_some(segment)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use holdfast_wire::openapi;

    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let (_, labels) = include_str!("route.rs").split_once("fn label(&self)").unwrap();
        let (labels, _) = labels.split_once("/// Finds the route").unwrap();
        let labels = labels.split("=> \"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
        let labels = labels.chain(["/healthz", "/readyz"]);
        let labels: BTreeSet<_> = labels.map(str::to_owned).collect();
        let document = openapi::document();
        let described = document["paths"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(labels, described);
    }

    #[test]
    fn paths_and_methods_find_their_route() {
        let get = |path| route(&Method::GET, path);
        let post = |path| route(&Method::POST, path);
        assert_eq!(
            post("/v1/chat/completions"),
            Ok(Found::Asked(Asked::Route(Route::Completions)))
        );
        assert_eq!(get("/v1/chat/completions"), Err(NoRoute::Method("POST")));
        assert_eq!(
            get("/v1/operations/abc"),
            Ok(Found::Asked(Asked::Route(Route::Operation("abc"))))
        );
        assert_eq!(
            get("/v1/operations/cancel"),
            Ok(Found::Asked(Asked::Route(Route::Operation("cancel"))))
        );
        assert_eq!(
            post("/v1/operations/abc/cancel"),
            Ok(Found::Asked(Asked::Route(Route::Cancel("abc"))))
        );
        assert_eq!(get("/v1/operations/abc/cancel"), Err(NoRoute::Method("POST")));
        let model = Route::Model("holdfast/sim-1");
        assert_eq!(get("/v1/models/holdfast/sim-1"), Ok(Found::Asked(Asked::Route(model))));
        assert_eq!(get("/readyz"), Ok(Found::Probe(Probe::Ready)));
        assert_eq!(route(&Method::DELETE, "/v1/wallet"), Err(NoRoute::Method("GET")));
        for nothing in [
            "/",
            "/v1",
            "/v1/operations/",
            "/v1/operations/a/b",
            "/v1/operations//cancel",
            "/v1/operations/a/b/cancel",
            "/v1/operations/a/cancel/",
            "/v1/wallet/",
        ] {
            assert_eq!(get(nothing), Err(NoRoute::NotFound), "{nothing}");
        }
    }
}
