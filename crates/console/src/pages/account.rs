//! The visitor's own account: the role in use, their sessions, their password.
//!
//! Forms here have no request key: each of them has the same result if it is sent twice. A change of the role or of the
//! password gives the session another token: a copy of the one before opens no session.
//!
//! Never: a resource of another person. A session of another person stays, and its id is as unknown as any.

use axum::extract::{Request as HttpRequest, State};
use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::fields::members;
use holdfast_accounts::{AccountsError, ResourceKind, SignInError, SignedIn};
use holdfast_domain::SessionId;
use holdfast_domain::admin::{Authority, BrowserMark, Session};
use uuid::Uuid;

use crate::cookie;
use crate::failure::{Failure, FieldRefusal};
use crate::kit::{
    Cell, Choice, ConsoleState, CurrentSession, Facts, FieldKind, Form, FormField, Id, Page, Table,
    Tone, read_form,
};
use crate::pages::parts::person::shown;
use crate::pages::parts::plain::{PlainForm, new_password};
use crate::request_origin::RequestOrigin;

texts! { #[template(path = "pages/account.txt")] AccountText {
    Password = "password",
    SignOut = "sign_out",
} }

pub(crate) async fn show(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    CurrentSession(signed_in): CurrentSession,
) -> Result<Page, Failure> {
    let sessions = shared.accounts.sessions_of(&signed_in).await?;
    let browsers = shared.accounts.browsers_of(&signed_in).await?;
    let person = &signed_in.person;
    let facts = vec![
        ("E-mail address", Cell::text(shown(person.email.as_ref()))),
        ("Name", Cell::some_text(person.name.as_ref().map(|name| name.as_str()))),
        ("Role in use", Cell::text(signed_in.session.authority.to_string())),
        ("Signed in", Cell::moment(signed_in.session.signed_in_at)),
    ];
    let rows = sessions.iter().map(|session| row(session, &signed_in));
    let sign_out = Form {
        action: "/sign-out".to_owned(),
        fields: Vec::new(),
        submit: "Sign out".to_owned(),
        is_grave: false,
    };
    Ok(Page::new("Your account")
        .action(roles(&request_origin, &signed_in).count() > 1, "Use another role", "/account/role")
        .action(true, "Change the password", "/account/password")
        .section(Facts::new("", facts))
        .action(true, "Sign out everywhere", "/account/sign-out")
        .section(Table::of("Sessions", rows, "No sessions.").keep(&["Address", "Role in use"]))
        .section(known_browsers(&browsers))
        .section(sign_out))
}

fn row(session: &Session, signed_in: &SignedIn) -> [(&'static str, Cell); 5] {
    let id = Uuid::from_bytes(session.id.to_bytes());
    let end = if session.id == signed_in.session.id {
        Cell::badge("this one", Tone::Good)
    } else {
        Cell::action("End it", format!("/account/sessions/{id}"))
    };
    [
        ("Session", Cell::moment(session.signed_in_at)),
        ("Address", Cell::text(session.address.as_str())),
        ("Last request", Cell::moment(session.last_seen_at)),
        ("Role in use", Cell::text(session.authority.to_string())),
        ("End", end),
    ]
}

fn known_browsers(browsers: &[BrowserMark]) -> Table {
    let row = |browser: &BrowserMark| {
        [
            ("First sign-in", Cell::moment(browser.created_at)),
            ("Last sign-in", Cell::moment(browser.used_at)),
            ("Address", Cell::text(browser.address.as_str())),
        ]
    };
    Table::of("Known browsers", browsers.iter().map(row), "No known browsers.")
}

/// Roles of the person that may be used here.
fn roles<'a>(
    request_origin: &'a RequestOrigin,
    signed_in: &'a SignedIn,
) -> impl Iterator<Item = Authority> + 'a {
    let roles = signed_in.grants.iter().map(|grant| grant.authority);
    roles.filter(|authority| request_origin.audience.admits(authority.role))
}

fn below(title: &str) -> Page {
    Page::new(title).below("Your account", "/account")
}

pub(crate) async fn show_role(
    request_origin: RequestOrigin,
    CurrentSession(signed_in): CurrentSession,
) -> Page {
    role_form(&request_origin, &signed_in).page()
}

fn role_form(request_origin: &RequestOrigin, signed_in: &SignedIn) -> PlainForm {
    let choice = |authority: Authority| Choice::new(authority.to_string(), authority.to_string());
    let choices = roles(request_origin, signed_in).map(choice).collect();
    let used = signed_in.session.authority.to_string();
    PlainForm::new(below("Use another role"), "/account/role", "Use it")
        .field(FormField::new("role", "Role", FieldKind::Select(choices)).value(used))
}

pub(crate) async fn send_role(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    CurrentSession(signed_in): CurrentSession,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let fields = read_form(&parts.headers, body).await?;
    // Any text can be sent: only a role of the person that may be used here is found.
    let chosen = fields.raw("role");
    let chosen =
        roles(&request_origin, &signed_in).find(|authority| authority.to_string() == chosen);
    let chosen = chosen.ok_or(AccountsError::NotFound(ResourceKind::Grant))?;
    let token = shared.accounts.choose_grant(&signed_in, chosen).await?;
    let mut answer = Redirect::to("/account").into_response();
    // Each role has another token of the session: a copy of the one before opens none.
    shared.begin_session(answer.headers_mut(), &request_origin, &token);
    Ok(answer)
}

pub(crate) async fn show_password() -> Page {
    password_form().page()
}

fn password_form() -> PlainForm {
    let page = below("Change the password").intro(AccountText::Password.to_string());
    PlainForm::new(page, "/account/password", "Change it")
        .field(FormField::of(&members::OLD_PASSWORD, FieldKind::Password { is_new: false }))
        .new_password()
}

pub(crate) async fn send_password(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    CurrentSession(signed_in): CurrentSession,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let fields = read_form(&parts.headers, body).await?;
    let origin = request_origin.sign_in_origin(&parts.headers);
    // First: a new password that cannot be costs neither an attempt nor a hash of the old one.
    let new = match new_password(&fields) {
        Ok(new) => new,
        Err(failure) => return Ok(password_form().failed(&fields, failure).into_response()),
    };
    let changed = match fields.raw("old").parse() {
        Ok(old) => shared.accounts.change_password(&signed_in, &old, &new, &origin).await,
        Err(_bad) => Err(SignInError::Wrong),
    };
    let error = match changed {
        Ok(renewed) => {
            let mut answer = Redirect::to("/account").into_response();
            shared.begin_session(answer.headers_mut(), &request_origin, &renewed.token);
            if let Some(mark) = &renewed.mark {
                cookie::put_mark(answer.headers_mut(), request_origin.jar(), mark);
            }
            return Ok(answer);
        }
        Err(error) => error,
    };
    let failure = match error {
        // 422 and not the 401 of a sign-in: the visitor is signed in, and a field is wrong.
        SignInError::Wrong => Failure::field("old", FieldRefusal::WrongPassword),
        error @ (SignInError::Slow { .. } | SignInError::Busy | SignInError::Unavailable(_)) => {
            error.into()
        }
    };
    Ok(password_form().failed(&fields, failure).into_response())
}

pub(crate) async fn show_session(
    State(shared): State<ConsoleState>,
    CurrentSession(signed_in): CurrentSession,
    Id(id): Id,
) -> Result<Page, Failure> {
    let sessions = shared.accounts.sessions_of(&signed_in).await?;
    let found = sessions.into_iter().find(|session| session.id == SessionId::from(id));
    let session = found.ok_or_else(Failure::not_found)?;
    let facts = vec![
        ("Signed in", Cell::moment(session.signed_in_at)),
        ("Address", Cell::text(session.address.as_str())),
        ("Last request", Cell::moment(session.last_seen_at)),
    ];
    let page = below("End a session").section(Facts::new("", facts));
    let plain_form = PlainForm::new(page, format!("/account/sessions/{id}"), "End this session");
    Ok(PlainForm { is_grave: true, ..plain_form }.page())
}

pub(crate) async fn send_session(
    State(shared): State<ConsoleState>,
    CurrentSession(signed_in): CurrentSession,
    Id(id): Id,
) -> Result<Response, Failure> {
    shared.accounts.end_session(&signed_in, SessionId::from(id)).await?;
    Ok(Redirect::to("/account").into_response())
}

pub(crate) async fn show_sign_out() -> Page {
    let page = below("Sign out everywhere").intro(AccountText::SignOut.to_string());
    let plain_form = PlainForm::new(page, "/account/sign-out", "Sign out everywhere");
    PlainForm { is_grave: true, ..plain_form }.page()
}

pub(crate) async fn send_sign_out(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    CurrentSession(signed_in): CurrentSession,
) -> Result<Response, Failure> {
    shared.accounts.sign_out_everywhere(&signed_in).await?;
    let mut answer = Redirect::to("/sign-in").into_response();
    cookie::end(answer.headers_mut(), request_origin.jar());
    Ok(answer)
}
