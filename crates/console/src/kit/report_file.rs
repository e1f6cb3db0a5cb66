//! Files of reports, for a browser to keep.
//!
//! A file of 20,000 rows takes tens of milliseconds to write, so a blocking thread writes it: a worker of the runtime
//! would answer no completion and no probe meanwhile.

use axum::response::{IntoResponse, Response};
use holdfast_admin::off_workers;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use crate::failure::Failure;

/// A file of this name and type.
pub(crate) async fn report_file(
    name: &str,
    content_type: &'static str,
    write: impl FnOnce() -> String + Send + 'static,
) -> Result<Response, Failure> {
    let failed = || Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "The file was not written.");
    let text = off_workers(write).await.map_err(|error| {
        tracing::error!(%error, "a file of a report was not written");
        failed()
    })?;
    let disposition = format!("attachment; filename=\"{name}\"");
    let disposition = HeaderValue::try_from(disposition).map_err(|error| {
        tracing::error!(%error, "a file of a report has no name for a header");
        failed()
    })?;
    let mut answer = text.into_response();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    Ok(answer)
}
