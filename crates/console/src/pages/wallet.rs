//! One wallet: its balance and threshold, and what can be done with it.

pub(crate) mod deposit;

use axum::extract::State;
use holdfast_accounts::Reference;
use holdfast_domain::account::UseCase;

use crate::ask::Id;
use crate::cell::Cell;
use crate::console::Desk;
use crate::failure::Failure;
use crate::page::Page;
use crate::pages::wallets::state;
use crate::section::Facts;
use crate::visitor::Visitor;

pub(crate) async fn show(
    State(desk): State<Desk>,
    visitor: Visitor,
    Id(id): Id,
) -> Result<Page, Failure> {
    let record = desk.accounts.wallet(&visitor.principal, &Reference::Id(id)).await?;
    let (wallet, base) = (&record.wallet, format!("/wallets/{id}"));
    let low = record.low_balance.map_or(Cell::Nothing, |low| Cell::money(low, wallet.currency));
    let facts = Facts::new(
        "",
        vec![
            ("Available", Cell::money(wallet.available, wallet.currency)),
            ("Held", Cell::money(wallet.held, wallet.currency)),
            ("Told as low below", low),
            ("State", state(&record)),
            ("External id", Cell::some_text(record.external_id.as_deref())),
            ("Made", Cell::moment(record.created_at)),
            ("Id", Cell::code(wallet.id)),
        ],
    );
    let is_open = record.closed_at.is_none();
    let may_deposit = is_open && visitor.may(UseCase::PostingDeposit);
    Ok(Page::new(&wallet.name)
        .below("Wallets", "/wallets")
        .action(may_deposit, "Deposit", format!("{base}/deposit"))
        .section(facts))
}
