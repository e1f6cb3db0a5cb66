//! The stylesheet and the script, within the binary. Pages name them by their path; there is nothing else to load.

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

const SCRIPT: &str = include_str!("../../assets/script.js");

/// The stylesheet.
pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../../assets/style.css"))
}

/// The script: pages work without it.
pub(crate) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let mut answer = text.into_response();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Another build may have another one under the same path.
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_enough_to_be_read_by_whoever_runs_it() {
        let lines = SCRIPT.lines().count();
        assert!(lines <= 150, "{lines} lines");
    }
}
