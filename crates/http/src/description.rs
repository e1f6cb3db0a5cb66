//! `GET /openapi.json` and `GET /docs`: the API's description, rendered when it is first read. The page runs no
//! script and loads no resource; its policy allows only its own style, by hash.

use std::sync::LazyLock;

use bytes::Bytes;
use holdfast_wire::openapi;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};

use crate::reply::{HttpResponse, json};
use crate::response_body::ResponseBody;

/// Rendered OpenAPI document and HTML page, with the security headers of the page.
#[derive(Debug)]
struct Description {
    document: Bytes,
    page: Bytes,
    page_headers: [(HeaderName, HeaderValue); 4],
}

/// The same for every listener of the process.
static DESCRIPTION: LazyLock<Description> = LazyLock::new(Description::render);

pub(crate) fn document() -> HttpResponse {
    json(StatusCode::OK, DESCRIPTION.document.clone())
}

pub(crate) fn page() -> HttpResponse {
    let mut answer = Response::new(ResponseBody::from(DESCRIPTION.page.clone()));
    answer.headers_mut().extend(DESCRIPTION.page_headers.clone());
    answer
}

impl Description {
    fn render() -> Self {
        let policy = format!(
            "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            openapi::STYLE_HASH
        );
        // Without a policy that can be sent, the strictest one: the page reads as well without style.
        let policy =
            HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Self {
            document: openapi::rendered().into(),
            page: openapi::page(&openapi::document()).into(),
            page_headers: [
                (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (CONTENT_SECURITY_POLICY, policy),
                (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
                (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            ],
        }
    }
}
