//! A page: its title, what can be done from it, and its sections. It has no markup; [`crate::kit::shell`] gives it one.

use axum::response::{IntoResponse, Response};
use holdfast_accounts::FormWords;
use holdfast_domain::admin::UseCase;
use http::StatusCode;

use crate::failure::Failure;
use crate::kit::{Filter, Link, Notice, Section, Tone, Visit, put_beside};

/// A page on its way to the shell.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) title: String,
    /// Sentence below the title.
    pub(crate) intro: String,
    /// Pages that this one is within.
    pub(crate) crumbs: Vec<Link>,
    /// Links to forms of the resource.
    pub(crate) actions: Vec<Link>,
    /// Links to forms that suspend, revoke or end: in a menu, apart from the others.
    pub(crate) dangers: Vec<Link>,
    pub(crate) sections: Vec<Section>,
    /// Failure that the page answers with.
    pub(crate) failure: Option<Failure>,
}

/// Use case that an answer refuses, for the guard, which counts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusedUseCase(pub(crate) UseCase);

impl Page {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            status: StatusCode::OK,
            title: title.into(),
            intro: String::new(),
            crumbs: Vec::new(),
            actions: Vec::new(),
            dangers: Vec::new(),
            sections: Vec::new(),
            failure: None,
        }
    }

    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same as the answer to a request that failed.
    pub(crate) fn failed(self, failure: &Failure) -> Self {
        Self { status: failure.status, failure: Some(failure.clone()), ..self }
    }

    pub(crate) fn intro(self, intro: impl Into<String>) -> Self {
        Self { intro: intro.into(), ..self }
    }

    /// The same below another page.
    pub(crate) fn below(mut self, text: impl Into<String>, href: impl Into<String>) -> Self {
        self.crumbs.push(Link::new(text, href));
        self
    }

    /// The same with a link to a form, if `may` is true.
    pub(crate) fn action(mut self, may: bool, text: &str, href: impl Into<String>) -> Self {
        if may {
            self.actions.push(Link::new(text, href));
        }
        self
    }

    /// The same with a link to the form of a use case, by its title, if the user may open it.
    pub(crate) fn form(self, visit: &Visit, use_case: UseCase, href: impl Into<String>) -> Self {
        match FormWords::of(use_case).filter(|_words| visit.may(use_case)) {
            Some(words) => self.action(true, words.title, href),
            None => self,
        }
    }

    /// The same with a link to a form that suspends, revokes or ends, if `may` is true.
    pub(crate) fn danger(mut self, may: bool, text: &str, href: impl Into<String>) -> Self {
        if may {
            self.dangers.push(Link::new(text, href));
        }
        self
    }

    pub(crate) fn section(mut self, section: impl Into<Section>) -> Self {
        self.sections.push(section.into());
        self
    }

    /// The same with a filter and its results; if a field of it cannot be read, with the refusal beside the field
    /// in the place of rows. Any other failure is a page of its own.
    pub(crate) fn narrowed(
        self,
        mut filter: Filter,
        found: Result<Vec<Section>, Failure>,
    ) -> Result<Self, Failure> {
        let is_of = |failure: &Failure, filter: &Filter| {
            filter.fields.iter().any(|field| Some(field.name) == failure.field.as_deref())
        };
        match found {
            Ok(sections) => Ok(sections.into_iter().fold(self.section(filter), Self::section)),
            Err(failure) if is_of(&failure, &filter) => {
                let page = self.failed(&failure);
                let text = put_beside(&mut filter.fields, failure);
                Ok(page.section(Notice::new(Tone::Bad, text)).section(filter))
            }
            Err(failure) => Err(failure),
        }
    }
}

impl IntoResponse for Page {
    /// An empty answer with the page beside it, for the shell.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(failure) = &self.failure {
            failure.put_retry_after(response.headers_mut());
            if let Some(use_case) = failure.refused {
                // Apart from the page, which the shell has taken out before the guard sees the
                // answer.
                response.extensions_mut().insert(RefusedUseCase(use_case));
            }
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let page = Page::new(self.status.canonical_reason().unwrap_or("Failed")).failed(&self);
        let notice = Notice::new(Tone::Bad, self.message).link("Home", "/");
        page.section(notice).into_response()
    }
}
