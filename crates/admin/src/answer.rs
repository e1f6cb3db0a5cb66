//! Answers: JSON, with what a repetition and an edit need in headers.
//!
//! | answer | headers |
//! |---|---|
//! | of a change | `idempotent-replayed`: whether an earlier request made it |
//! | of a thing that is edited | `etag`: the number of its edits, for `If-Match` |
//! | any | `cache-control: no-store`: balances grow old, and some answers are told once |

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Code, Problem};
use holdfast_domain::ErrorChain;

pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// An answer of JSON.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    status: StatusCode,
    view: T,
    replayed: Option<bool>,
    edited: Option<u32>,
}

impl<T> Answer<T> {
    /// A thing, or a list.
    pub(crate) const fn of(view: T) -> Self {
        Self { status: StatusCode::OK, view, replayed: None, edited: None }
    }

    /// A thing that was made. A repetition has the first answer's status.
    pub(crate) const fn made(view: T, replayed: bool) -> Self {
        Self { status: StatusCode::CREATED, view, replayed: Some(replayed), edited: None }
    }

    /// A thing that was changed.
    pub(crate) const fn changed(view: T, replayed: bool) -> Self {
        Self { status: StatusCode::OK, view, replayed: Some(replayed), edited: None }
    }

    /// The same with the number of the thing's edits.
    pub(crate) fn edited(self, edited: u32) -> Self {
        Self { edited: Some(edited), ..self }
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let body = match serde_json::to_vec(&self.view) {
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

/// The thing as a change has left it, or as it would.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ChangeOutcome<T> {
    /// The change was made.
    Made(T),
    /// It was judged, and not made.
    Rehearsed(Rehearsal<T>),
}

/// Answer of a dry run: the thing as the request would leave or make it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rehearsal<T> {
    would: T,
}

impl<T> Answer<T> {
    /// The same for a request that may have been a rehearsal.
    pub(crate) fn or_rehearsed(self, is_rehearsal: bool) -> Answer<ChangeOutcome<T>> {
        let Self { status, view, replayed, edited } = self;
        if is_rehearsal {
            Answer::of(ChangeOutcome::Rehearsed(Rehearsal { would: view }))
        } else {
            Answer { status, view: ChangeOutcome::Made(view), replayed, edited }
        }
    }
}
