//! Answers as CSV, on request: by `format=csv`, or by an `Accept` that names `text/csv`.
//!
//! Files are streamed ([`crate::export`]). Columns are those of the command line, from one place (`holdfast_wire`).

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use holdfast_wire::file::FileFormat;
use http::header::ACCEPT;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::error::Problem;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportFormat {
    Json,
    Csv,
    /// JSON lines: an object for each row.
    Jsonl,
}

impl ReportFormat {
    /// Format of a file; `None` for an answer in pages.
    pub(crate) const fn of_file(self) -> Option<FileFormat> {
        match self {
            Self::Json => None,
            Self::Csv => Some(FileFormat::Csv),
            Self::Jsonl => Some(FileFormat::JsonLines),
        }
    }
}

/// True if `Accept` names CSV, and does not refuse it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcceptsCsv(bool);

impl AcceptsCsv {
    /// The format: that of the query, which wins, or what is accepted.
    pub(crate) fn format(self, requested: Option<ReportFormat>) -> ReportFormat {
        let accepted = if self.0 { ReportFormat::Csv } else { ReportFormat::Json };
        requested.unwrap_or(accepted)
    }
}

impl<S: Sync> FromRequestParts<S> for AcceptsCsv {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let values = parts.headers.get_all(ACCEPT).iter();
        let mut ranges =
            values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        // A wildcard does not choose CSV: many clients send one with every request, and JSON is the
        // form of the API.
        Ok(Self(ranges.any(is_csv)))
    }
}

/// True for a range of `Accept` that is CSV; one of quality 0 refuses it.
fn is_csv(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let is_csv = parts.next().is_some_and(|range| range.eq_ignore_ascii_case("text/csv"));
    let is_refused = |quality: &str| {
        quality.split_once('=').is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("q") && value.trim_matches(['0', '.']).is_empty()
        })
    };
    is_csv && !parts.any(is_refused)
}

/// A report in the requested format.
#[derive(Debug)]
pub(crate) enum ReportAnswer<T> {
    Json(Answer<T>),
    /// A file of a whole period, as it is read.
    File(Response),
}

impl<T: Serialize> IntoResponse for ReportAnswer<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Json(answer) => answer.into_response(),
            Self::File(answer) => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_what_an_accept_names_and_does_not_refuse() {
        for (range, expected) in [
            ("text/csv", true),
            ("Text/CSV; header=present", true),
            ("text/csv;q=0.1", true),
            ("text/csv;q=0", false),
            ("text/csv; q=0.000", false),
            ("text/*", false),
            ("*/*", false),
            ("application/json", false),
        ] {
            assert_eq!(is_csv(range), expected, "{range}");
        }
    }
}
