//! Answers: JSON, and the headers that a repetition and an edit need.
//!
//! | answer | headers |
//! |---|---|
//! | of a change | `idempotent-replayed`: true if an earlier request made the change |
//! | of an editable resource | `etag`: the number of its edits, for `If-Match` |
//! | any | `cache-control: no-store`: balances grow old, and secrets are shown once |

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Code, Problem};
use crate::off_workers::off_workers;
use holdfast_domain::ErrorChain;

pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// An answer of JSON.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    status: StatusCode,
    body: Body<T>,
    replayed: Option<bool>,
    edited: Option<u32>,
}

/// Outcome of a handler: its answer, or a problem.
pub(crate) type Reply<T> = Result<Answer<T>, Problem>;

/// Body of an answer: yet to be rendered, or rendered on a blocking thread.
#[derive(Debug)]
enum Body<T> {
    View(T),
    Rendered(Vec<u8>),
}

impl<T: Serialize + Send + 'static> Answer<T> {
    /// A view that may be large: it is made and rendered off the runtime's workers.
    pub(crate) async fn large(view: impl FnOnce() -> T + Send + 'static) -> Result<Self, Problem> {
        Self::try_large(move || Ok(view())).await
    }

    /// The same for a view that can fail.
    pub(crate) async fn try_large(
        view: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<Self, Problem> {
        let rendered = off_workers(move || view().map(|view| serde_json::to_vec(&view))).await;
        let failed = |error: &dyn std::error::Error| {
            tracing::error!(error = %ErrorChain(error), "an answer cannot be rendered");
            Problem::new(Code::InternalError)
        };
        let rendered = rendered.map_err(|error| failed(&error))??;
        let body = Body::Rendered(rendered.map_err(|error| failed(&error))?);
        Ok(Self { status: StatusCode::OK, body, replayed: None, edited: None })
    }
}

impl<T> Answer<T> {
    /// Answer with a resource.
    pub(crate) const fn of(view: T) -> Self {
        Self { status: StatusCode::OK, body: Body::View(view), replayed: None, edited: None }
    }

    /// Answer with a created resource. A repetition has the first answer's status.
    pub(crate) const fn made(view: T, replayed: bool) -> Self {
        let body = Body::View(view);
        // For a repetition too: a client whose first answer was lost needs no second branch.
        Self { status: StatusCode::CREATED, body, replayed: Some(replayed), edited: None }
    }

    /// Answer with a changed resource.
    pub(crate) const fn changed(view: T, replayed: bool) -> Self {
        let body = Body::View(view);
        Self { status: StatusCode::OK, body, replayed: Some(replayed), edited: None }
    }

    /// The same answer with the number of the resource's edits.
    pub(crate) fn edited(self, edited: u32) -> Self {
        Self { edited: Some(edited), ..self }
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let rendered = match self.body {
            Body::View(view) => serde_json::to_vec(&view),
            Body::Rendered(body) => Ok(body),
        };
        let body = match rendered {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(error = %ErrorChain(&error), "an answer cannot be rendered");
                return Problem::new(Code::InternalError).into_response();
            }
        };
        let mut answer = Response::new(body.into());
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // On every answer and not by endpoint: one that is forgotten could leave a secret in a
        // cache.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(replayed) = self.replayed {
            let replayed = if replayed { "true" } else { "false" };
            headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static(replayed));
        }
        if let Some(etag) =
            self.edited.and_then(|it| HeaderValue::try_from(format!("\"{it}\"")).ok())
        {
            headers.insert(ETAG, etag);
        }
        answer
    }
}

/// The resource after a change, or after the change of a dry run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChangeOutcome<T> {
    /// The change was made.
    Made(T),
    /// The change was judged, and not made.
    Rehearsed(Rehearsal<T>),
}

/// Answer of a dry run: the resource as the request would leave or create it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rehearsal<T> {
    would: T,
}

impl<T> Answer<T> {
    /// The same for a request that may have been a rehearsal.
    pub(crate) fn or_rehearsed(self, is_rehearsal: bool) -> Answer<ChangeOutcome<T>> {
        let Self { status, body, replayed, edited } = self;
        let view = match body {
            Body::View(view) => view,
            Body::Rendered(body) => {
                return Answer { status, body: Body::Rendered(body), replayed, edited };
            }
        };
        if is_rehearsal {
            // Status 200 without `idempotent-replayed` and `etag`: no resource was created, and no
            // key bound.
            Answer::of(ChangeOutcome::Rehearsed(Rehearsal { would: view }))
        } else {
            Answer { status, body: Body::View(ChangeOutcome::Made(view)), replayed, edited }
        }
    }
}
