//! Forms without a request key: sign-in, links and the visitor's own account. What they do is done once by
//! its nature, or is the same when it is done again.

use crate::failure::{Failure, FieldRefusal};
use crate::kit::{FieldKind, Form, FormField, Notice, Page, SentFields, Tone, put_beside};
use holdfast_accounts::Password;
use holdfast_accounts::fields::members;

/// Names of the fields of a new password.
const NEW: &str = "password";
const AGAIN: &str = "again";

/// A form without a request key.
#[derive(Debug)]
pub(crate) struct PlainForm {
    pub(crate) page: Page,
    pub(crate) action: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) submit: &'static str,
    pub(crate) is_grave: bool,
}

impl PlainForm {
    pub(crate) fn new(page: Page, action: impl Into<String>, submit: &'static str) -> Self {
        Self { page, action: action.into(), fields: Vec::new(), submit, is_grave: false }
    }

    pub(crate) fn field(mut self, field: FormField) -> Self {
        self.fields.push(field);
        self
    }

    /// The same with the fields of a new password.
    pub(crate) fn new_password(self) -> Self {
        let new = FieldKind::Password { is_new: true };
        self.field(FormField::of(&members::NEW_PASSWORD, new.clone()))
            .field(FormField::of(&members::NEW_PASSWORD_AGAIN, new))
    }

    /// The page with the form below its sections.
    pub(crate) fn page(self) -> Page {
        let Self { page, action, fields, submit, is_grave } = self;
        page.section(Form { action, fields, submit: submit.to_owned(), is_grave })
    }

    /// The page with what was sent, and what is wrong with it.
    pub(crate) fn failed(mut self, sent: &SentFields, failure: Failure) -> Page {
        self.fields = self.fields.into_iter().map(|field| field.holding(sent)).collect();
        self.page = self.page.failed(&failure);
        let text = put_beside(&mut self.fields, failure);
        self.page = self.page.section(Notice::new(Tone::Bad, text));
        self.page()
    }
}

/// The new password of a form, which was typed twice alike.
pub(crate) fn new_password(fields: &SentFields) -> Result<Password, Failure> {
    // Blanks and all: people type what they like.
    let password = fields.raw(NEW).parse();
    let password = password.map_err(|_bad| Failure::field(NEW, FieldRefusal::PasswordLength))?;
    if fields.raw(NEW) == fields.raw(AGAIN) {
        Ok(password)
    } else {
        Err(Failure::field(AGAIN, FieldRefusal::PasswordsDiffer))
    }
}
