//! Paths and methods. A route's label is bounded, so that metrics are.

use http::Method;

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `POST /v1/chat/completions`
    Completions,
    /// `GET /v1/operations/{idempotency-key}`
    Operation(&'a str),
    /// `GET /v1/wallet`
    Wallet,
    /// `GET /v1/models`
    Models,
    /// `GET /v1/models/{publisher}/{name}`
    Model(&'a str),
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Ready,
    /// `GET /openapi.json`
    OpenApi,
    /// `GET /docs`
    Docs,
}

/// Why a request is for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Nothing is at this path.
    NotFound,
    /// The path takes this method only.
    Method(&'static str),
}

impl Route<'_> {
    /// The name in logs and metrics.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Completions => "/v1/chat/completions",
            Self::Operation(_) => "/v1/operations/{idempotency-key}",
            Self::Wallet => "/v1/wallet",
            Self::Models => "/v1/models",
            Self::Model(_) => "/v1/models/{publisher}/{name}",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
            Self::OpenApi => "/openapi.json",
            Self::Docs => "/docs",
        }
    }
}

/// Finds the route of a request.
pub(crate) fn route<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, NoRoute> {
    let found = match path {
        "/v1/chat/completions" => Route::Completions,
        "/v1/wallet" => Route::Wallet,
        "/v1/models" => Route::Models,
        "/healthz" => Route::Health,
        "/readyz" => Route::Ready,
        "/openapi.json" => Route::OpenApi,
        "/docs" => Route::Docs,
        other => {
            if let Some(key) = segment(other, "/v1/operations/") {
                Route::Operation(key)
            } else if let Some(id) = other.strip_prefix("/v1/models/") {
                Route::Model(id)
            } else {
                return Err(NoRoute::NotFound);
            }
        }
    };
    let wanted = match found {
        Route::Completions => Method::POST,
        Route::Operation(_)
        | Route::Wallet
        | Route::Models
        | Route::Model(_)
        | Route::Health
        | Route::Ready
        | Route::OpenApi
        | Route::Docs => Method::GET,
    };
    if *method == wanted {
        Ok(found)
    } else if wanted == Method::POST {
        Err(NoRoute::Method("POST"))
    } else {
        Err(NoRoute::Method("GET"))
    }
}

fn segment<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| !rest.is_empty() && !rest.contains('/'))
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
        let labels: BTreeSet<_> = labels.map(str::to_owned).collect();
        let document = openapi::document();
        let described = document["paths"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(labels, described);
    }

    #[test]
    fn paths_and_methods_find_their_route() {
        let get = |path| route(&Method::GET, path);
        assert_eq!(route(&Method::POST, "/v1/chat/completions"), Ok(Route::Completions));
        assert_eq!(get("/v1/chat/completions"), Err(NoRoute::Method("POST")));
        assert_eq!(get("/v1/operations/abc"), Ok(Route::Operation("abc")));
        assert_eq!(get("/v1/models/holdfast/sim-1"), Ok(Route::Model("holdfast/sim-1")));
        assert_eq!(route(&Method::DELETE, "/v1/wallet"), Err(NoRoute::Method("GET")));
        for nothing in ["/", "/v1", "/v1/operations/", "/v1/operations/a/b", "/v1/wallet/"] {
            assert_eq!(get(nothing), Err(NoRoute::NotFound), "{nothing}");
        }
    }
}
