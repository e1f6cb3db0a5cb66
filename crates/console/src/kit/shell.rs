//! The frame around every page: head, navigation by what the visitor may see, the page, foot.
//!
//! A handler's answer has its [`Page`] beside it; the shell renders it and puts the headers on that every answer of
//! the console has. So a page is independent of navigation, and no handler forgets a header.
//!
//! Never: a style or a script within the page, or one from elsewhere. The policy would not run them.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_admin::off_workers;
use holdfast_domain::admin::UseCase;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode, Uri};

use crate::audience::Audience;
use crate::kit::{Brand, ConsoleOptions, ConsoleState, Link, Page, SentFields, Visitor};

/// Policy of pages: they load only from the console, and in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
/// Features of browsers that no page uses.
const FEATURES: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), fullscreen=(), \
    geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), \
    publickey-credentials-get=(), usb=()";

/// Address of the search, whose form every page has.
const SEARCH: &str = "/search";
/// Field of the term.
pub(crate) const TERM: &str = "q";

/// Address of the playground.
pub(crate) const PLAYGROUND: &str = "/playground";

/// Entries of the navigation under one title: the text, the address, and the use case that it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NavigationGroup {
    /// Title of the group; empty for entries without one.
    pub(crate) title: &'static str,
    pub(crate) entries: &'static [(&'static str, &'static str, UseCase)],
}

/// Navigation of operators and of holders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Navigation {
    pub(crate) operators: &'static [NavigationGroup],
    pub(crate) holders: &'static [NavigationGroup],
}

/// Part of the frame that does not depend on the visitor.
#[derive(Debug, Clone)]
pub(crate) struct ShellState {
    navigation: Navigation,
    options: Arc<ConsoleOptions>,
}

impl ShellState {
    pub(crate) fn new(shared: &ConsoleState, navigation: Navigation) -> Self {
        Self { navigation, options: Arc::clone(&shared.options) }
    }
}

/// Links of one group, and which of them the page is within.
#[derive(Debug)]
struct LinkGroup {
    title: &'static str,
    links: Vec<(Link, bool)>,
}

/// Name, logo and links of the frame.
#[derive(Debug)]
struct ShownBrand {
    name: String,
    has_logo: bool,
    support_url: Option<String>,
    top_up_url: Option<String>,
}

impl ShownBrand {
    /// The operator's brand for holders, at their own listener before they sign in too; else the product's name.
    fn new(options: &ConsoleOptions, visitor: Option<&Visitor>) -> Self {
        let is_holder = match visitor {
            Some(visitor) => visitor.principal.role.is_holder(),
            None => options.audience == Audience::Holders,
        };
        let Brand { name, logo, support_url, top_up_url } =
            if is_holder { options.brand.clone() } else { Brand::default() };
        let name = name.unwrap_or_else(|| "Holdfast".to_owned());
        Self { name, has_logo: logo.is_some(), support_url, top_up_url }
    }
}

#[derive(Debug, Template)]
#[template(path = "page.html")]
struct Shell {
    page: Page,
    navigation: Vec<LinkGroup>,
    visitor: Option<Visitor>,
    /// Term of the search, on its own page.
    sought: String,
    /// Address of the public API's documentation.
    docs: String,
    brand: ShownBrand,
}

/// Renders the page of an answer, and puts on the headers that every answer has.
pub(crate) async fn render(
    State(frame): State<ShellState>,
    request: Request,
    next: Next,
) -> Response {
    let visitor = request.extensions().get::<Visitor>().cloned();
    let path = request.uri().path().to_owned();
    let sought = sought(request.uri());
    let mut answer = next.run(request).await;
    if let Some(page) = answer.extensions_mut().remove::<Page>() {
        let navigation = match &visitor {
            Some(visitor) => navigation(&frame, visitor, &path),
            None => Vec::new(),
        };
        let page = named_by(&navigation, page);
        let docs = documentation(&frame.options.base_url);
        let brand = ShownBrand::new(&frame.options, visitor.as_ref());
        let shell = Shell { page, navigation, visitor, sought, docs, brand };
        answer = rendered(shell, answer).await;
    }
    let headers = answer.headers_mut();
    // The logo has a policy of its own: an SVG may style itself, in a sandbox.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(PERMISSIONS_POLICY, HeaderValue::from_static(FEATURES));
    // The path stays here, as it may be a link's. Under `no-referrer` browsers send an `Origin`
    // of `null` with our own forms, and those that do not send `Sec-Fetch-Site` could change
    // nothing.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    // Balances grow old, and a secret is shown once: *back* must not find either in a cache.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

async fn rendered(shell: Shell, answer: Response) -> Response {
    let (mut head, _empty) = answer.into_parts();
    // A worker that renders a large page answers no completion meanwhile.
    let rendered = match off_workers(move || shell.render()).await {
        Ok(rendered) => rendered,
        Err(error) => {
            tracing::error!(%error, "a page was not rendered");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    match rendered {
        Ok(html) => {
            let html_type = HeaderValue::from_static("text/html; charset=utf-8");
            head.headers.insert(CONTENT_TYPE, html_type);
            // That of the empty answer that the page came with.
            head.headers.remove(http::header::CONTENT_LENGTH);
            Response::from_parts(head, html.into())
        }
        Err(error) => {
            tracing::error!(%error, "a page was not rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Links to what the visitor may see, and which of them the page is within.
fn navigation(frame: &ShellState, visitor: &Visitor, path: &str) -> Vec<LinkGroup> {
    let is_holder = visitor.principal.role.is_holder();
    let groups = if is_holder { frame.navigation.holders } else { frame.navigation.operators };
    let is_there = |href: &str| href != PLAYGROUND || frame.options.playground.is_some();
    let group = |group: &NavigationGroup| {
        let seen = group.entries.iter();
        let seen = seen.filter(|(_, href, use_case)| is_there(href) && visitor.may(*use_case));
        let entry = |(text, href, _): &(&str, &str, UseCase)| {
            let is_within =
                path == *href || (*href != "/" && path.starts_with(&format!("{href}/")));
            (Link::new(*text, *href), is_within)
        };
        LinkGroup { title: group.title, links: seen.map(entry).collect() }
    };
    groups.iter().map(group).filter(|group| !group.links.is_empty()).collect()
}

/// The page with crumbs that have the navigation's words: a list is called alike wherever a page is below it.
fn named_by(navigation: &[LinkGroup], mut page: Page) -> Page {
    for crumb in &mut page.crumbs {
        let mut links = navigation.iter().flat_map(|group| &group.links);
        if let Some((link, _is_here)) = links.find(|(link, _is_here)| link.href == crumb.href) {
            crumb.text.clone_from(&link.text);
        }
    }
    page
}

/// Term of the search that this address is of; empty for every other page.
fn sought(address: &Uri) -> String {
    let query = address.query().filter(|_query| address.path() == SEARCH).unwrap_or("");
    SentFields::parse(query.as_bytes()).raw(TERM).to_owned()
}

/// Address of the documentation that the public API serves beside its `/v1`.
fn documentation(base_url: &str) -> String {
    format!("{}/docs", base_url.strip_suffix("/v1").unwrap_or(base_url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn danger_stands_in_the_menu_more_apart_from_the_actions() {
        let options = crate::tests::site::shared_options();
        let shown = |page: Page| {
            let brand = ShownBrand::new(&options, None);
            let (sought, docs) = (String::new(), String::new());
            let shell = Shell { page, navigation: Vec::new(), visitor: None, sought, docs, brand };
            shell.render().unwrap()
        };
        let page = Page::new("acme").action(true, "Deposit", "/d").danger(true, "Close", "/close");
        let html = shown(page.danger(false, "Suspend", "/suspend"));
        let (before, menu) = html.split_once("<summary class=\"button\">More</summary>").unwrap();
        let (menu, _after) = menu.split_once("</details>").unwrap();
        assert!(before.contains(">Deposit</a>") && !before.contains(">Close</a>"), "{html}");
        assert!(
            menu.contains("<a href=\"/close\">Close</a>") && !menu.contains("Suspend"),
            "{html}"
        );
        assert!(!shown(Page::new("acme").action(true, "Deposit", "/d")).contains("More</summary>"));
    }
}
