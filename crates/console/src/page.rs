//! A page: its title, what can be done from it, and its sections. It has no markup; [`crate::shell`] gives it one.

use axum::response::{IntoResponse, Response};
use holdfast_domain::account::UseCase;
use http::StatusCode;

use crate::cell::{Link, Tone};
use crate::failure::Failure;
use crate::section::{Notice, Section};

/// A page on its way to the shell.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) title: String,
    /// Sentence below the title.
    pub(crate) intro: String,
    /// Pages that this one is within.
    pub(crate) crumbs: Vec<Link>,
    /// What can be done from here.
    pub(crate) actions: Vec<Link>,
    pub(crate) sections: Vec<Section>,
    /// Use case that was refused to the visitor.
    pub(crate) refused: Option<UseCase>,
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
            sections: Vec::new(),
            refused: None,
        }
    }

    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn intro(self, intro: impl Into<String>) -> Self {
        Self { intro: intro.into(), ..self }
    }

    /// The same below another page.
    pub(crate) fn below(mut self, text: impl Into<String>, href: impl Into<String>) -> Self {
        self.crumbs.push(Link::new(text, href));
        self
    }

    /// The same with a link to what can be done, where `may` is true.
    pub(crate) fn action(mut self, may: bool, text: &str, href: impl Into<String>) -> Self {
        if may {
            self.actions.push(Link::new(text, href));
        }
        self
    }

    pub(crate) fn section(mut self, section: impl Into<Section>) -> Self {
        self.sections.push(section.into());
        self
    }
}

impl IntoResponse for Page {
    /// An empty answer with the page beside it, for the shell.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(use_case) = self.refused {
            response.extensions_mut().insert(RefusedUseCase(use_case));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Failed");
        let notice = Notice::new(Tone::Bad, self.message).link("To the first page", "/");
        let page = Page::new(title).status(self.status).section(notice);
        Page { refused: self.refused, ..page }.into_response()
    }
}
