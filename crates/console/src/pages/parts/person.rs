//! People as several pages show them.

use crate::failure::Failure;
use crate::kit::{Cell, Link, Table, Tone, Visit};
use crate::pages::parts::reference::WALLET;
use holdfast_domain::admin::listing::{PageRequest, PersonFilter};
use holdfast_domain::admin::{EmailAddress, PersonRecord, PersonState, Reach};
use holdfast_domain::{PersonId, WalletId};
use uuid::Uuid;

texts! { #[template(path = "pages/people.txt")] PersonPartText { NoneOfWallet = "none_of_wallet" } }

/// People of a wallet: what each has of it, or is offered.
pub(crate) async fn of_wallet(
    visit: &Visit,
    wallet: WalletId,
    page: PageRequest,
) -> Result<Table, Failure> {
    let filter = PersonFilter { wallet: Some(wallet), ..Default::default() };
    let listed = visit.accounts().people(visit.principal(), filter, page).await?;
    // For operators, too: roles of other wallets are no part of this wallet's page.
    let there = |record: PersonRecord| record.seen_from(Reach::Wallet(wallet));
    let rows = listed.rows.into_iter().filter_map(there);
    let rows = rows.map(|record| {
        vec![Cell::link(called(&record), address(record.person.id)), roles(&record), state(&record)]
    });
    let all = Link::new("All people", format!("/people?{WALLET}={wallet}"));
    Ok(Table::new(
        "People",
        &["Person", "Role", "State"],
        rows.collect(),
        PersonPartText::NoneOfWallet,
    )
    .link(all))
}

/// Roles that they have, and those that they are offered.
pub(crate) fn roles(record: &PersonRecord) -> Cell {
    let taken = record.grants.iter().map(|grant| grant.authority.role.to_string());
    let offered = record.offered().map(|it| format!("{} (offered)", it.role));
    Cell::text(taken.chain(offered).collect::<Vec<_>>().join(", "))
}

pub(crate) fn state(record: &PersonRecord) -> Cell {
    let state = record.state();
    let tone = match state {
        PersonState::Pending => Tone::Warning,
        PersonState::Active => Tone::Good,
        PersonState::Ended => Tone::Plain,
    };
    Cell::badge(state.label(), tone)
}

pub(crate) fn email(record: &PersonRecord) -> Option<&str> {
    record.person.email.as_ref().map(EmailAddress::as_str)
}

/// Name of a person on pages: by their address, or by their id if that is erased or not known yet.
pub(crate) fn called(record: &PersonRecord) -> String {
    email(record).map_or_else(|| record.person.id.to_string(), str::to_owned)
}

/// The address as its person sees it.
pub(crate) fn shown(email: Option<&EmailAddress>) -> &str {
    email.map_or("", EmailAddress::as_str)
}

pub(crate) fn address(id: PersonId) -> String {
    format!("/people/{}", Uuid::from_bytes(id.to_bytes()))
}
