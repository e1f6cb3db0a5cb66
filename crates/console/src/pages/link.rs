//! The page of a one-time link: an invitation, a new password, or the first owner.
//!
//! Shown at every GET, also to a mail scanner, and used once, by POST. A person with a password uses it signed in; a
//! person without one sets one, and is signed in by that, with a new session as a sign-in begins it.
//!
//! Never: the token in a log, or a session for a user of a link who has not set or proven the password.

use axum::extract::{Path, Request as HttpRequest, State};
use axum::response::{IntoResponse, Redirect, Response};
use holdfast_accounts::fields::members;
use holdfast_accounts::{AcceptedLink, LinkError, LinkView, Name, SignInOrigin};
use holdfast_domain::PersonId;
use holdfast_domain::admin::{EmailAddress, LinkPurpose};
use holdfast_domain::secret::LinkToken;
use http::StatusCode;

use crate::audience::Audience;
use crate::failure::{Failure, RequestRefusal};
use crate::kit::{
    Cell, ConsoleState, CurrentSession, Facts, FieldKind, FormField, Notice, Page, SentFields,
    Tone, isolated, read_form, with_query,
};
use crate::pages::parts::person::shown;
use crate::pages::parts::plain::{PlainForm, new_password};
use crate::pages::parts::session::enter;
use crate::request_origin::RequestOrigin;

texts! { #[template(path = "pages/link.txt")] LinkText {
    SignIn { email: String } = "sign_in",
    Owner = "owner",
} }

pub(crate) async fn show(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    session: Option<CurrentSession>,
    Path(token): Path<String>,
) -> Result<Page, Failure> {
    let token = read(&token)?;
    let view = look(&shared, &request_origin, &token).await?;
    if must_sign_in(&view, session.as_ref()) {
        return Ok(sign_in_first(&token, &view));
    }
    Ok(plain_form(&token, &view).page())
}

/// Purpose of a link. At the holders' own listener a link to another role is none.
async fn look(
    shared: &ConsoleState,
    request_origin: &RequestOrigin,
    token: &LinkToken,
) -> Result<LinkView, Failure> {
    let view = shared.accounts.look_at_link(token).await?;
    let role = view.purpose.authority().map(|authority| authority.role);
    if request_origin.audience == Audience::Holders && role.is_some_and(|role| !role.is_holder()) {
        return Err(RequestRefusal::LinkForOperators.into());
    }
    Ok(view)
}

pub(crate) async fn send(
    State(shared): State<ConsoleState>,
    request_origin: RequestOrigin,
    session: Option<CurrentSession>,
    Path(token): Path<String>,
    request: HttpRequest,
) -> Result<Response, Failure> {
    let token = read(&token)?;
    let (parts, body) = request.into_parts();
    let fields = read_form(&parts.headers, body).await?;
    let signed_in = session.as_ref().map(|CurrentSession(signed_in)| signed_in.person.id);
    let origin = request_origin.sign_in_origin(&parts.headers);
    let accepted = match look(&shared, &request_origin, &token).await {
        Ok(view) if must_sign_in(&view, session.as_ref()) => {
            return Ok(sign_in_first(&token, &view).into_response());
        }
        Ok(view) => {
            let used = accept(&shared, (&token, &view), &fields, (signed_in, &origin)).await;
            used.map_err(|failure| (failure, Some(view)))
        }
        Err(failure) => Err((failure, None)),
    };
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err((failure, Some(view))) if failure.status != StatusCode::NOT_FOUND => {
            return Ok(plain_form(&token, &view).failed(&fields, failure).into_response());
        }
        // The first of a double click has used the link, before or since it was looked at.
        Err((failure, _)) => {
            again(&shared, &origin, &token, &fields, signed_in).await.ok_or(failure)?
        }
    };
    let before = session.as_ref().map(|CurrentSession(before)| before);
    let entered = match &accepted.begun {
        // The link is used: a failure here must not read as if it were not.
        Some(begun) => match enter(&shared, &request_origin, (begun, before), "/").await {
            Ok(entered) => entered,
            Err(failure) => {
                tracing::error!(?failure, "a link was used, and its session could not be entered");
                None
            }
        },
        None => None,
    };
    // Used in a session, or at a listener of other roles.
    let next = if signed_in == Some(accepted.person) { "/account" } else { "/sign-in" };
    Ok(entered.unwrap_or_else(|| Redirect::to(next).into_response()))
}

/// Result of a link whose form was sent before with the same values: a double click sends it twice.
async fn again(
    shared: &ConsoleState,
    origin: &SignInOrigin,
    token: &LinkToken,
    fields: &SentFields,
    signed_in: Option<PersonId>,
) -> Option<AcceptedLink> {
    let password = new_password(fields).ok();
    shared.accounts.accepted_by(token, password.as_ref(), signed_in, origin).await
}

fn read(token: &str) -> Result<LinkToken, Failure> {
    LinkToken::parse(token).ok_or_else(|| LinkError::NotValid.into())
}

/// True if its person has a password, and is not the one who is signed in.
fn must_sign_in(view: &LinkView, session: Option<&CurrentSession>) -> bool {
    let email = session.and_then(|CurrentSession(signed_in)| signed_in.person.email.as_ref());
    view.requires_sign_in && (email.is_none() || email != view.email.as_ref())
}

fn sign_in_first(token: &LinkToken, view: &LinkView) -> Page {
    let next = address(token);
    let text = LinkText::SignIn { email: isolated(shown(view.email.as_ref())) }.to_string();
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
        LinkPurpose::FirstOwner => "Become the owner",
        LinkPurpose::Accept(_) => "Accept an invitation",
        LinkPurpose::SetPassword => "Set a password",
    }
}

fn plain_form(token: &LinkToken, view: &LinkView) -> PlainForm {
    let page = Page::new(title(view));
    if view.purpose == LinkPurpose::FirstOwner {
        let page = page.intro(LinkText::Owner.to_string());
        return PlainForm::new(page, address(token), "Become the owner")
            .field(FormField::of(&members::PERSON_EMAIL, FieldKind::Email))
            .field(FormField::text(&members::PERSON_NAME))
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
    shared: &ConsoleState,
    (token, view): (&LinkToken, &LinkView),
    fields: &SentFields,
    (signed_in, origin): (Option<PersonId>, &SignInOrigin),
) -> Result<AcceptedLink, Failure> {
    let accounts = &shared.accounts;
    if view.purpose == LinkPurpose::FirstOwner {
        let email: EmailAddress = fields.require("email")?;
        let name: Option<Name> = fields.read("name")?;
        let password = new_password(fields)?;
        let used = accounts.accept_first_owner(token, &email, name.as_ref(), &password).await?;
        return Ok(accounts.sign_in_by_link(used, Some(&email), origin).await);
    }
    let password = if view.requires_sign_in { None } else { Some(new_password(fields)?) };
    let used = accounts.accept_link(token, password.as_ref(), signed_in).await?;
    Ok(accounts.sign_in_by_link(used, view.email.as_ref(), origin).await)
}
