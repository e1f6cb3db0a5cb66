//! Probes of the process, for load balancers and supervisors. Every listener answers them as far as it can, and
//! a full process does too: one that does not answer is taken for dead, and what it runs with it.

use holdfast_engine::{Engine, Readiness};
use holdfast_net::AnswerLength;
use http::{Request, StatusCode};

use crate::reply::{HttpResponse, json};
use crate::route::{Route, route};

/// Answer to a probe; `None` for any other route. `healthz` does not touch the store; `readyz` turns 503 if
/// traffic should go to other nodes.
pub(crate) async fn answer_probe(engine: &Engine, route: Route<'_>) -> Option<HttpResponse> {
    let (status, body) = match route {
        Route::Health => (StatusCode::OK, r#"{"status":"ok"}"#.to_owned()),
        Route::Ready => {
            let (status, readiness) = match engine.readiness().await {
                Readiness::Ready => (StatusCode::OK, "ready"),
                Readiness::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
                Readiness::Storage => (StatusCode::SERVICE_UNAVAILABLE, "storage_unavailable"),
                Readiness::LostCommits => (StatusCode::SERVICE_UNAVAILABLE, "lost_commits"),
            };
            let durability = engine.durability().label();
            (status, format!(r#"{{"status":"{readiness}","durability":"{durability}"}}"#))
        }
        Route::Completions
        | Route::Quotes
        | Route::Operation(_)
        | Route::Cancel(_)
        | Route::Receipt(_)
        | Route::ReceiptKeys
        | Route::Wallet
        | Route::Usage(_)
        | Route::Models
        | Route::Model(_)
        | Route::OpenApi
        | Route::Docs => return None,
    };
    Some(json(status, body))
}

/// Time that the answer to a request may take on a connection beyond the limits: `/healthz` answers without
/// waiting.
pub(crate) fn answer_length<B>(request: &Request<B>) -> AnswerLength {
    match route(request.method(), request.uri().path()) {
        Ok(Route::Health) => AnswerLength::Brief,
        Ok(_) | Err(_) => AnswerLength::Long,
    }
}
