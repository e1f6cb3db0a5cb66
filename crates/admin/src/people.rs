//! `/people`: invite, list, show, end. No caller grants a right that it lacks, nor ends one.
//!
//! A link is shown once, in the answer of the request that created it: under `admin.url`, for holders under
//! `console.url`, or as a path if neither is set. Its bearer accepts the role that it gives; a person with a
//! password has to sign in as well.
//!
//! A holder's administrator sees only the people of the one wallet, and only their roles on it.

use holdfast_accounts::{InvitationWithLink, NewInvitation, Outcome};
use holdfast_domain::admin::listing::PersonFilter;
use holdfast_domain::admin::{Authority, PersonRecord, Reach, Role};
use holdfast_domain::debug_as;
use holdfast_domain::{PersonId, Timestamp, WalletId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, Reply};
use crate::description::{ChangeHeader, Errors, PersonPath};
use crate::error::Problem;
use crate::page::{List, ListPages, ListParams, NoFilters, PageQuery};
use crate::request::{Caller, Change, ChangeBody, ReasonBody};
use crate::value::schema::{NameText, ReasonText};
use crate::value::{Moment, PersonStateLabel, RoleLabel, parse, parse_some};

/// Path of a link below the address of its console.
const LINK_PATH: &str = "/link/";

const SHOWN_BEFORE: &str = "No link was made: an earlier request with this Idempotency-Key made it and was told \
    it then, or the person has the role already. POST /admin/v1/people/{id}/link with a new \
    Idempotency-Key makes another one.";

/// A role that a person has.
#[derive(Debug, Serialize, ToSchema)]
struct PersonGrantView {
    role: RoleLabel,
    /// The one wallet of a holder's role.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    granted_at: Moment,
    /// Actor that granted it: `local`, `admin_key:<id>` or `person:<id>`.
    granted_by: String,
}

/// A link that a person can use, without its token.
#[derive(Debug, Serialize, ToSchema)]
struct OpenLinkView {
    /// Purpose: `accept` gives a role, `set_password` lets the person set one, `first_owner` creates the first
    /// owner.
    purpose: &'static str,
    /// Role that it gives.
    role: Option<RoleLabel>,
    /// The one wallet of a holder's role.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    expires_at: Moment,
}

/// A person with what they may.
#[derive(Serialize, ToSchema)]
#[schema(as = Person)]
pub(crate) struct PersonView {
    #[schema(format = "uuid")]
    id: String,
    /// Null once it is erased.
    email: Option<String>,
    name: Option<String>,
    state: PersonStateLabel,
    /// Roles, in the order in which they were taken.
    grants: Vec<PersonGrantView>,
    /// The link that they can use, if one exists; of several the one that expires last.
    link: Option<OpenLinkView>,
    created_at: Moment,
    /// Actor of the first invitation: `local`, `admin_key:<id>` or `person:<id>`.
    created_by: String,
    ended_at: Option<Moment>,
}

debug_as!(PersonView as it: "PersonView({})", it.id);

fn wallet_of(authority: Authority) -> Option<String> {
    match authority.reach {
        Reach::All => None,
        Reach::Wallet(wallet) => Some(wallet.to_string()),
    }
}

impl PersonView {
    fn new(record: PersonRecord, now: Timestamp) -> Self {
        let state = record.state().into();
        let link = record.open_links(now).next().map(|link| {
            let authority = link.purpose.authority();
            OpenLinkView {
                purpose: link.purpose.label(),
                role: authority.map(|it| it.role.into()),
                wallet_id: authority.and_then(wallet_of),
                expires_at: Moment(link.expires_at),
            }
        });
        let grants = record.grants.iter().map(|grant| PersonGrantView {
            role: grant.authority.role.into(),
            wallet_id: wallet_of(grant.authority),
            granted_at: Moment(grant.granted_at),
            granted_by: grant.granted_by.to_string(),
        });
        let (grants, person) = (grants.collect(), record.person);
        Self {
            id: person.id.to_string(),
            email: person.email.map(|email| email.as_str().to_owned()),
            name: person.name.map(|name| name.0),
            state,
            grants,
            link,
            created_at: Moment(person.created_at),
            created_by: person.created_by.to_string(),
            ended_at: person.ended_at.map(Moment),
        }
    }
}

/// A link that was made for a person.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvitedPerson {
    /// Id of the person.
    #[schema(format = "uuid")]
    id: String,
    /// One-time link, shown only in this answer and good for 24 hours: under `console.url` for a person who is only
    /// a holder, else under `admin.url`; a path if that is not set. Null if this request created none.
    url: Option<String>,
    /// Remedy if `url` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    notice: Option<&'static str>,
}

debug_as!(InvitedPerson as it: "InvitedPerson({})", it.id);

impl InvitedPerson {
    fn new(caller: &Caller, invitation: InvitationWithLink, roles: &[Role]) -> Self {
        let url = invitation.link.map(|token| {
            // A path without an origin if no address is configured: the listener's own address need
            // not be the one that people reach it by, so none is made up.
            let origin = caller.gate.options.origin_for(roles).unwrap_or_default();
            let token = token.expose();
            format!("{origin}{LINK_PATH}{token}")
        });
        let notice = url.is_none().then_some(SHOWN_BEFORE);
        Self { id: invitation.person.to_string(), url, notice }
    }
}

/// A person, or a role of one, that was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedPerson {
    /// Id of the person.
    #[schema(format = "uuid")]
    id: String,
}

impl EndedPerson {
    fn answer(ended: Outcome<PersonId>) -> Answer<Self> {
        Answer::changed(Self { id: ended.thing.to_string() }, ended.replayed)
    }
}

/// Invitation of a person.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InvitationDraft {
    /// E-mail address: 3 to 254 characters. It is kept in small letters.
    #[schema(
        min_length = 3,
        max_length = 254,
        pattern = "^[^@\\s\\x00-\\x1f\\x7f-\\x9f]+@[^@\\s\\x00-\\x1f\\x7f-\\x9f]+$",
        example = "ada@example.com"
    )]
    email: String,
    /// 1 to 64 printable characters, not like an id. A known person keeps theirs.
    #[schema(value_type = Option<NameText>)]
    name: Option<String>,
    role: RoleLabel,
    /// The one wallet of a holder's role; none for any other.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

debug_as!(InvitationDraft as it: "InvitationDraft({:?})", it.role);

impl ChangeBody for InvitationDraft {
    // Left out of the digest, which stays in the audit log after an erasure: the digest of a known
    // address would prove who it was.
    const PRIVATE: &'static [&'static str] = &["email", "name"];
}

/// End of a person.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonEndBody {
    /// True to erase their e-mail address and name as well.
    #[serde(default)]
    #[schema(required = false)]
    erase: bool,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for PersonEndBody {}

/// End of a role of a person.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantEndBody {
    role: RoleLabel,
    /// The one wallet of a holder's role; none for any other.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for GrantEndBody {}

fn reach(wallet: Option<&str>) -> Result<Reach, Problem> {
    let wallet: Option<WalletId> = parse_some("wallet_id", wallet)?;
    Ok(wallet.map_or(Reach::All, Reach::Wallet))
}

#[utoipa::path(
    post, path = "/people", operation_id = "invite_person", tag = "people",
    params(ChangeHeader), request_body = InvitationDraft,
    responses((status = 201, description = "The link.", body = InvitedPerson), Errors)
)]
/// Offers a role to the owner of an e-mail address; the one-time link is shown only in this answer.
pub(crate) async fn invite(
    caller: Caller,
    Change { request, body }: Change<InvitationDraft>,
) -> Reply<InvitedPerson> {
    let new = NewInvitation {
        email: parse("email", &body.email)?,
        name: parse_some("name", body.name.as_deref())?,
        role: body.role.into(),
        reach: reach(body.wallet_id.as_deref())?,
    };
    let invitation = caller.accounts().invite_person(&caller.principal, &request, &new).await?;
    Ok(Answer::made(
        InvitedPerson::new(&caller, invitation.thing, &[new.role]),
        invitation.replayed,
    ))
}

#[utoipa::path(
    get, path = "/people", operation_id = "list_people", tag = "people", params(PageQuery),
    responses((status = 200, description = "A page.", body = List<PersonView>), Errors)
)]
/// Lists people, those who have ended among them; to a holder those of their wallet.
pub(crate) async fn list(
    caller: Caller,
    ListParams(NoFilters {}, page): ListParams<NoFilters>,
) -> Reply<List<PersonView>> {
    let list = ListPages::new(&caller, "people", &())?;
    let page = list.request(&page)?;
    let found = caller.accounts().people(&caller.principal, PersonFilter::default(), page).await?;
    // The database's clock decides if a link is open, as it does when the link is used.
    let now = caller.accounts().clock().await?;
    list.list_as(found, move |record| PersonView::new(record, now)).await
}

#[utoipa::path(
    get, path = "/people/{id}", operation_id = "show_person", tag = "people", params(PersonPath),
    responses((status = 200, description = "The person.", body = PersonView), Errors)
)]
/// Shows a person with their roles.
pub(crate) async fn show(caller: Caller) -> Reply<PersonView> {
    let found = caller.accounts().person(&caller.principal, caller.id()?).await?;
    let now = caller.accounts().clock().await?;
    Ok(Answer::of(PersonView::new(found, now)))
}

#[utoipa::path(
    post, path = "/people/{id}/link", operation_id = "renew_person_link", tag = "people",
    params(PersonPath, ChangeHeader), request_body = Option<ReasonBody>,
    responses((status = 200, description = "The link.", body = InvitedPerson), Errors)
)]
/// Creates another link for a person. A person with a role loses password and sessions with it, and sets another
/// password by the link; an owner's link is created only with direct database access.
pub(crate) async fn renew_link(caller: Caller, change: Change<ReasonBody>) -> Reply<InvitedPerson> {
    let id = caller.id()?;
    let invitation = caller.accounts().renew_link(&caller.principal, &change.request, id).await?;
    // The link exists by here and is shown this once: it is shown even if the roles cannot be read.
    let person = caller.accounts().person(&caller.principal, id).await;
    let roles = person.map_or_else(|_unread| Vec::new(), |person| person.roles());
    Ok(Answer::changed(InvitedPerson::new(&caller, invitation.thing, &roles), invitation.replayed))
}

#[utoipa::path(
    post, path = "/people/{id}/end", operation_id = "end_person", tag = "people",
    params(PersonPath, ChangeHeader), request_body = Option<PersonEndBody>,
    responses((status = 200, description = "The id.", body = EndedPerson), Errors)
)]
/// Ends a person with all roles and sessions, for good. The last owner stays.
pub(crate) async fn end(
    caller: Caller,
    Change { request, body }: Change<PersonEndBody>,
) -> Reply<EndedPerson> {
    let id = caller.id()?;
    let ended = caller.accounts().end_person(&caller.principal, &request, id, body.erase).await?;
    Ok(EndedPerson::answer(ended))
}

#[utoipa::path(
    post, path = "/people/{id}/grants/end", operation_id = "end_person_grant", tag = "people",
    params(PersonPath, ChangeHeader), request_body = GrantEndBody,
    responses((status = 200, description = "The id.", body = EndedPerson), Errors)
)]
/// Ends a role of a person, or the offer of it, and the sessions that use it.
pub(crate) async fn end_grant(
    caller: Caller,
    Change { request, body }: Change<GrantEndBody>,
) -> Reply<EndedPerson> {
    let authority = Authority { role: body.role.into(), reach: reach(body.wallet_id.as_deref())? };
    let id = caller.id()?;
    let ended = caller.accounts().end_grant(&caller.principal, &request, id, authority).await?;
    Ok(EndedPerson::answer(ended))
}
