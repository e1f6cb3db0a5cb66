//! Sign-in and sign-out.
//!
//! A sign-in begins a new session, even if the browser has one: no attacker can prepare a session for
//! another person. The session before ends with it, and its role stays in use if it was of the same person.
//!
//! Never: a word about which of address and password was wrong, or whether the address is known.

use axum::extract::{Request as HttpRequest, State};
use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::fields::members;
use holdfast_accounts::{BegunSession, SignInError};
use http::request::Parts;

use crate::audience::Audience;
use crate::cookie;
use crate::failure::{Failure, RequestRefusal};
use crate::kit::form::REVIEW;
use crate::kit::{
    ConsoleState, CurrentSession, FieldKind, FormField, Page, Query, SentFields, read_form,
    with_query, within, without,
};
use crate::pages::parts::person::shown;
use crate::pages::parts::plain::PlainForm;
use crate::pages::parts::session::enter;
use crate::request_origin::RequestOrigin;

texts! { #[template(path = "pages/account.txt")] SignInText { Confirm = "confirm" } }

const NEXT: &str = "next";
const EMAIL: &str = "email";

pub(crate) async fn show(Query(query): Query, session: Option<CurrentSession>) -> Page {
    let mut form = plain_form(&next(&query));
    // Pages of people, admin keys and webhooks require a sign-in of the last minutes.
    if let Some(CurrentSession(signed_in)) = session {
        let email = shown(signed_in.person.email.as_ref()).to_owned();
        form.page = form.page.intro(SignInText::Confirm.to_string());
        let fields = form.fields.into_iter();
        form.fields =
            fields.map(|it| if it.name == EMAIL { it.value(&email) } else { it }).collect();
    }
    form.page()
}

/// The form that leads to this address.
fn plain_form(next: &str) -> PlainForm {
    let next = Some(next).filter(|next| *next != "/");
    PlainForm::new(Page::new("Sign in"), with_query("/sign-in", &[(NEXT, next)]), "Sign in")
        .field(FormField::of(&members::PERSON_EMAIL, FieldKind::Email))
        .field(FormField::of(&members::PASSWORD, FieldKind::Password { is_new: false }))
}

/// Address to go to: one of the console's own, and without the fields of a form that is to be reviewed. The person who
/// made the link to the sign-in may have chosen them, and behind a sign-in they would pass for its person's.
fn next(query: &SentFields) -> String {
    let address = query.get(NEXT).and_then(within);
    address.map_or_else(|| "/".to_owned(), |address| without(address, REVIEW))
}

pub(crate) async fn send(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let query = SentFields::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let next = next(&query);
    let fields = read_form(&parts.headers, body).await?;
    let begun = match begin(&shared, &request_origin, &parts, &fields).await {
        Ok(begun) => begun,
        Err(error) => {
            return Ok(plain_form(&next).failed(&fields, error.into()).into_response());
        }
    };
    let before = parts.extensions.get().map(|CurrentSession(before)| before);
    let entered = enter(&shared, &request_origin, (&begun, before), &next).await?;
    Ok(entered.unwrap_or_else(|| {
        let refused = match request_origin.audience {
            Audience::Holders => RequestRefusal::ForHolders,
            Audience::Everyone | Audience::Operators => RequestRefusal::ForOperators,
        };
        plain_form(&next).failed(&fields, refused.into()).into_response()
    }))
}

async fn begin(
    shared: &ConsoleState,
    request_origin: &RequestOrigin,
    parts: &Parts,
    fields: &SentFields,
) -> Result<BegunSession, SignInError> {
    let email = fields.raw(EMAIL);
    // A text that cannot be a password cannot be right.
    let password = fields.raw("password").parse().map_err(|_bad| SignInError::Wrong)?;
    let origin = request_origin.sign_in_origin(&parts.headers);
    shared.accounts.sign_in(email, &password, &origin).await
}

pub(crate) async fn sign_out(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    session: Option<CurrentSession>,
) -> Result<Response, Failure> {
    if let Some(CurrentSession(signed_in)) = session {
        shared.accounts.sign_out(&signed_in).await?;
    }
    let mut answer = Redirect::to("/sign-in").into_response();
    cookie::end(answer.headers_mut(), request_origin.jar());
    Ok(answer)
}
