//! The stylesheet and the script, within the binary. Pages name them by their path; no other file is loaded.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};

use crate::failure::Failure;
use crate::kit::ConsoleState;

/// Policy of the logo: an SVG may style itself, and neither runs nor loads anything.
const LOGO_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

const SCRIPT: &str = include_str!("../../assets/script.js");

/// The stylesheet.
pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../../assets/style.css"))
}

/// The script: pages work without it.
pub(crate) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

/// The operator's logo: shown as a picture, and under a policy that runs no script if it is opened.
pub(crate) async fn logo(State(shared): State<ConsoleState>) -> Result<Response, Failure> {
    let logo = shared.options.brand.logo.as_ref().ok_or_else(Failure::not_found)?;
    let mut answer = logo.bytes.clone().into_response();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(logo.media_type));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(LOGO_POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(answer)
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
