//! People: the list, and one person with their roles and what can be done with them.

pub(crate) mod change;
pub(crate) mod invite;

use holdfast_accounts::{InvitationWithLink, Principal};
use holdfast_domain::PersonId;
use holdfast_domain::admin::listing::PersonFilter;
use holdfast_domain::admin::{PersonGrant, PersonRecord, PersonState, Reach, Role, UseCase};

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome};
use crate::kit::{Cell, Facts, FieldKind, Filter, FormField, Page, Pages, Table, Visit, isolated};
use crate::pages::parts::person::{address, called, email, roles, state};
use crate::pages::parts::reference::{self, wallet_field};

texts! { #[template(path = "pages/people.txt")] PeopleText {
    Empty = "empty",
    Link = "link",
} }

const STATE: &str = "state";
const ROLE: &str = "role";

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let found = found(&visit).await.map(|table| vec![table.into()]);
    Page::new(visit.visitor.word("People", "Team"))
        .form(&visit, UseCase::PersonInvite, "/people/new")
        .narrowed(narrowing(&visit).await?, found)
}

async fn found(visit: &Visit) -> Result<Table, Failure> {
    let known = |label: &str| PersonState::ALL.into_iter().find(|it| it.label() == label);
    let filter = PersonFilter {
        wallet: reference::wallet(visit, &visit.query).await?,
        role: visit.query.choice(ROLE, Role::from_label)?,
        state: visit.query.choice(STATE, known)?,
        seen_from: None,
    };
    let pages = Pages::new(visit, "/people", &visit.query);
    let listed = visit.accounts().people(visit.principal(), filter, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let rows = listed.rows.iter().map(row);
    Ok(Table::of("People", rows, PeopleText::Empty).next(next))
}

async fn narrowing(visit: &Visit) -> Result<Filter, Failure> {
    let states = PersonState::ALL.map(PersonState::label);
    let is_holders = visit.principal().only_wallet().is_some();
    let roles = Role::ALL.into_iter().filter(|role| role.is_holder() || !is_holders);
    let mut fields = vec![
        FormField::sought(STATE, "State", FieldKind::any_of("Any", states), &visit.query),
        FormField::sought(
            ROLE,
            "Role",
            FieldKind::any_of("Any", roles.map(Role::label)),
            &visit.query,
        ),
    ];
    fields.extend(wallet_field(visit).await?);
    Ok(Filter::new("/people", fields))
}

fn row(record: &PersonRecord) -> [(&'static str, Cell); 4] {
    [
        ("Person", Cell::link(called(record), address(record.person.id))),
        ("State", state(record)),
        ("Roles", roles(record)),
        ("Created", Cell::moment(record.person.created_at)),
    ]
}

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = visit.id()?;
    let principal = visit.principal();
    let record = visit.accounts().person(principal, PersonId::from(id)).await?;
    let base = address(record.person.id);
    let mut facts = vec![
        ("E-mail address", Cell::some_text(email(&record))),
        ("Name", Cell::some_text(record.person.name.as_ref().map(|name| name.as_str()))),
        ("State", state(&record)),
        ("Created", Cell::moment(record.person.created_at)),
        ("Ended", Cell::some_moment(record.person.ended_at)),
        ("Id", Cell::code(id)),
    ];
    let now = visit.accounts().clock().await?;
    for link in record.open_links(now) {
        facts.push(("Link", Cell::text(link.purpose.label())));
        facts.push(("Link valid until", Cell::moment(link.expires_at)));
    }
    let table = Table::of("Roles", record.grants.iter().map(grant), "No role.");
    let is_there = record.state() != PersonState::Ended;
    let may_end = is_there && visit.may(UseCase::PersonEnd);
    let may_link = is_there && may_give_link(principal, &record);
    Ok(Page::new(isolated(&called(&record)))
        .below("People", "/people")
        .action(may_link, "New link", format!("{base}/link"))
        .danger(may_end && has_role(&record), "End a role", format!("{base}/end-role"))
        // A person may have roles of other wallets, which a holder must not end with them.
        .danger(may_end && principal.reach == Reach::All, "End", format!("{base}/end"))
        .section(Facts::new("", facts))
        .section(table))
}

/// True if the principal has all that the person has. An owner's link comes from the command line.
fn may_give_link(principal: &Principal, record: &PersonRecord) -> bool {
    let grantor = principal.authority();
    let is_within =
        |it: &PersonGrant| it.authority.role != Role::Owner && grantor.may_grant(it.authority);
    principal.role.may(UseCase::PersonLink) && record.grants.iter().all(is_within)
}

fn has_role(record: &PersonRecord) -> bool {
    record.offered().next().is_some() || !record.grants.is_empty()
}

fn grant(grant: &PersonGrant) -> [(&'static str, Cell); 3] {
    let wallet = match grant.authority.reach {
        Reach::All => Cell::Nothing,
        Reach::Wallet(wallet) => Cell::link(wallet.to_string(), format!("/wallets/{wallet}")),
    };
    let role = Cell::text(grant.authority.role.to_string());
    [("Role", role), ("Wallet", wallet), ("Given", Cell::moment(grant.granted_at))]
}

/// The person whose page or form it is.
async fn opened(visit: &Visit) -> Result<PersonRecord, Failure> {
    let id = PersonId::from(visit.id()?);
    Ok(visit.accounts().person(visit.principal(), id).await?)
}

fn framed(form: FormFrame, record: &PersonRecord) -> FormFrame {
    form.below("People", "/people").below(called(record), address(record.person.id))
}

/// Outcome of a form that makes a link to hand over, which is shown once.
fn linked(visit: &Visit, made: &InvitationWithLink, roles: &[Role]) -> FormOutcome {
    let Some(token) = &made.link else { return FormOutcome::done().next(address(made.person)) };
    // The address at which these roles sign in, which need not be this listener's.
    let origin = visit.shared.options.address.origin_for(roles);
    let origin = origin.unwrap_or_else(|| visit.origin.clone());
    let link = format!("{origin}/link/{}", token.expose());
    FormOutcome::secret(PeopleText::Link.to_string(), "Link", link)
}
