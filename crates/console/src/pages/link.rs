//! The page of a one-time link: an invitation, a new password, or the first owner.
//!
//! Shown as often as somebody looks, a scanner of mail among them, and used by POST alone, once. Whoever has a
//! password uses it signed in; whoever has none sets one.
//!
//! Never: the token in a log, or a session for whoever used a link. They sign in with what they set.

use axum::extract::{Path, Request as HttpRequest, State};
use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::{LinkError, LinkView, Name, SignInOrigin, UsedLink};
use holdfast_domain::PersonId;
use holdfast_domain::admin::{EmailAddress, LinkPurpose};
use holdfast_domain::secret::LinkToken;
use http::StatusCode;

use crate::audience::Audience;
use crate::cookie;
use crate::door::Doorway;
use crate::failure::Failure;
use crate::kit::address::with_query;
use crate::kit::ask::{SentFields, form};
use crate::kit::cell::{Cell, Tone};
use crate::kit::desk::Desk;
use crate::kit::field::{FieldKind, FormField};
use crate::kit::isolation::isolated;
use crate::kit::page::Page;
use crate::kit::section::{Facts, Notice};
use crate::kit::visitor::CurrentSession;
use crate::pages::parts::plain::{PlainForm, new_password};
use crate::pages::parts::sign_in::shown;

const NOT_VALID: &str = "This link is not valid any more: it was used, or replaced, or it is too old. Ask \
    whoever gave it to you for another one.";

const ELSEWHERE: &str = "This link gives no role for a wallet, and works at the operators' console alone. Open it \
    there.";

pub(crate) async fn show(
    State(desk): State<Desk>,
    door: Doorway,
    session: Option<CurrentSession>,
    Path(token): Path<String>,
) -> Result<Page, Failure> {
    let token = read(&token)?;
    let view = look(&desk, &door, &token).await?;
    if must_sign_in(&view, session.as_ref()) {
        return Ok(sign_in_first(&token, &view));
    }
    Ok(sheet(&token, &view).page())
}

/// Purpose of a link. At the holders' own listener a link to another role is none.
async fn look(desk: &Desk, door: &Doorway, token: &LinkToken) -> Result<LinkView, Failure> {
    let view = desk.accounts.look_at_link(token).await.map_err(refusal)?;
    let role = view.purpose.authority().map(|authority| authority.role);
    if door.audience == Audience::Holders && role.is_some_and(|role| !role.is_holder()) {
        return Err(Failure::new(StatusCode::NOT_FOUND, ELSEWHERE));
    }
    Ok(view)
}

pub(crate) async fn send(
    State(desk): State<Desk>,
    door: Doorway,
    session: Option<CurrentSession>,
    Path(token): Path<String>,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let token = read(&token)?;
    let (parts, body) = request.into_parts();
    let fields = form(&parts.headers, body).await?;
    let signed_in = session.as_ref().map(|CurrentSession(signed_in)| signed_in.person.id);
    let origin = door.sign_in_origin(&parts.headers);
    let done = |person| {
        Redirect::to(if signed_in == Some(person) { "/account" } else { "/sign-in" })
            .into_response()
    };
    let view = match look(&desk, &door, &token).await {
        Ok(view) if must_sign_in(&view, session.as_ref()) => {
            return Ok(sign_in_first(&token, &view).into_response());
        }
        Ok(view) => view,
        Err(failure) => {
            return again(&desk, &origin, &token, &fields, signed_in)
                .await
                .map(done)
                .ok_or(failure);
        }
    };
    match accept(&desk, &token, &view, &fields, signed_in).await {
        Ok(UsedLink { person, password }) => {
            let mut answer = done(person);
            if let Some(password) = password {
                // The next sign-in from here waits for no failures of strangers.
                let mark = desk.accounts.mark_browser(person, &password, door.client).await;
                if let Some(mark) = mark {
                    cookie::put_mark(answer.headers_mut(), door.jar(), &mark);
                }
            }
            Ok(answer)
        }
        Err(failure) if failure.status == StatusCode::NOT_FOUND => {
            again(&desk, &origin, &token, &fields, signed_in).await.map(done).ok_or(failure)
        }
        Err(failure) => Ok(sheet(&token, &view).failed(&fields, failure).into_response()),
    }
}

/// The person of a link whose form was sent before with the same values: a double click sends it twice.
async fn again(
    desk: &Desk,
    origin: &SignInOrigin,
    token: &LinkToken,
    fields: &SentFields,
    signed_in: Option<PersonId>,
) -> Option<PersonId> {
    let password = new_password(fields).ok();
    desk.accounts.accepted_by(token, password.as_ref(), signed_in, origin).await
}

fn read(token: &str) -> Result<LinkToken, Failure> {
    LinkToken::parse(token).ok_or_else(|| refusal(LinkError::NotValid))
}

/// True where its person has a password, and is not the one who is signed in.
fn must_sign_in(view: &LinkView, session: Option<&CurrentSession>) -> bool {
    let email = session.and_then(|CurrentSession(signed_in)| signed_in.person.email.as_ref());
    view.requires_sign_in && (email.is_none() || email != view.email.as_ref())
}

fn sign_in_first(token: &LinkToken, view: &LinkView) -> Page {
    let next = address(token);
    let text = format!(
        "This link is for {}, who has a password: sign in as that person, then use it.",
        isolated(shown(view.email.as_ref()))
    );
    let href = with_query("/sign-in", &[("next", Some(&next))]);
    Page::new(title(view))
        .status(StatusCode::FORBIDDEN)
        .section(Notice::new(Tone::Plain, text).link("Sign in", href))
}

fn address(token: &LinkToken) -> String {
    format!("/link/{}", token.expose())
}

const fn title(view: &LinkView) -> &'static str {
    match view.purpose {
        LinkPurpose::FirstOwner => "Become the first owner",
        LinkPurpose::Accept(_) => "Accept an invitation",
        LinkPurpose::SetPassword => "Set a password",
    }
}

fn sheet(token: &LinkToken, view: &LinkView) -> PlainForm {
    let page = Page::new(title(view));
    if view.purpose == LinkPurpose::FirstOwner {
        let page = page.intro("The owner may do everything, and invites everybody else.");
        return PlainForm::new(page, address(token), "Become the owner")
            .field(FormField::new("email", "E-mail address", FieldKind::Email))
            .field(FormField::optional("name", "Name", FieldKind::Text))
            .new_password();
    }
    let mut rows = vec![("For", Cell::text(shown(view.email.as_ref())))];
    if let Some(authority) = view.purpose.authority() {
        rows.push(("Role", Cell::text(authority.to_string())));
    }
    rows.push(("Valid until", Cell::moment(view.expires_at)));
    let page = page.section(Facts::new("", rows));
    if view.requires_sign_in {
        PlainForm::new(page, address(token), "Accept")
    } else {
        PlainForm::new(page, address(token), "Set the password").new_password()
    }
}

async fn accept(
    desk: &Desk,
    token: &LinkToken,
    view: &LinkView,
    fields: &SentFields,
    signed_in: Option<PersonId>,
) -> Result<UsedLink, Failure> {
    let accounts = &desk.accounts;
    let accepted = if view.purpose == LinkPurpose::FirstOwner {
        let email: EmailAddress = fields.want("email")?;
        let name: Option<Name> = fields.read("name")?;
        let password = new_password(fields)?;
        accounts.accept_first_owner(token, &email, name.as_ref(), &password).await
    } else {
        let password = if view.requires_sign_in { None } else { Some(new_password(fields)?) };
        accounts.accept_link(token, password.as_ref(), signed_in).await
    };
    accepted.map_err(refusal)
}

fn refusal(error: LinkError) -> Failure {
    match error {
        LinkError::NotValid => Failure::new(StatusCode::NOT_FOUND, NOT_VALID),
        LinkError::SignInFirst => {
            let message = "Sign in first, as the person whom the link is for.";
            Failure::new(StatusCode::FORBIDDEN, message)
        }
        LinkError::PasswordMissing => Failure::field("password", "Set a password."),
        LinkError::EmailTaken => Failure::field("email", "Another person has this e-mail address."),
        LinkError::Busy => {
            let message = "Many passwords are set at this moment. Try again in a few seconds.";
            Failure::new(StatusCode::TOO_MANY_REQUESTS, message)
        }
        LinkError::Failed(error) => error.into(),
    }
}
