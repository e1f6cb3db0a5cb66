//! `holdfast wallet`

mod statement;

use anyhow::{Context, anyhow};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{PostingId, WalletId, Wallets};
use holdfast_store::Store;
use holdfast_store::list::Order;
use holdfast_wire::api::{PostingView, WalletView};
use uuid::Uuid;

use super::pages::{self, ALL};
use crate::accounts::create_wallet;
use crate::accounts::posting::{self, PostingReceipt};
use crate::cli;
use crate::cli::value::Reference;
use crate::failure::CommandFailure;
use crate::output::{Output, note};
use holdfast_config::Config;

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::Wallet,
) -> Result<(), CommandFailure> {
    match command {
        cli::Wallet::Create { name, currency } => {
            let wallet = create_wallet(store, name.as_str(), currency).await?;
            show(output, &wallet)?;
            let mut prices = config.models.iter().flat_map(|model| &model.prices);
            if !prices.any(|price| price.version.currency == currency) {
                note(&format!(
                    "no model has a price in {currency}: this wallet can pay for none until one has"
                ));
            }
            Ok(())
        }
        cli::Wallet::Deposit { wallet, amount, key } => {
            let wallet = find(store, &wallet).await?;
            let booked = posting::deposit(store, &wallet, amount.micros(), posting_id(key)).await;
            show_posting(output, store, booked).await
        }
        cli::Wallet::Refund { operation, amount, key } => {
            let (operation, amount) = (operation.operation(), amount.micros());
            let booked = posting::refund(store, operation, amount, posting_id(key)).await;
            show_posting(output, store, booked).await
        }
        cli::Wallet::Adjust { wallet, amount, reason, key } => {
            let wallet = find(store, &wallet).await?;
            let (amount, reason) = (amount.micros(), reason.as_str());
            let booked = posting::adjust(store, &wallet, amount, reason, posting_id(key)).await;
            show_posting(output, store, booked).await
        }
        cli::Wallet::Show { wallet } => show(output, &find(store, &wallet).await?),
        cli::Wallet::List => {
            let (mut views, mut rows) = (Vec::new(), Vec::new());
            let add = |wallet| {
                views.push(WalletView::for_operator(&wallet));
                rows.push(fields(&wallet).map(|(_, value)| value));
            };
            let page = |request| store.wallets(request);
            let read = pages::read(Order::Oldest, ALL, page, add).await;
            read.context("wallets were not listed")?;
            output.list(&views, ["id", "name", "currency", "available", "held"], &rows)
        }
        cli::Wallet::Ledger { wallet, period, limit } => {
            statement::run(output, store, &wallet, period.period()?, limit).await
        }
    }
}

/// Id of a posting, from `--key` or made here: an offer under a known id changes nothing. A made
/// one is printed before the offer, so that an operator who loses the answer can repeat the
/// command.
fn posting_id(key: Option<Uuid>) -> PostingId {
    let id = PostingId::from(key.unwrap_or_else(Uuid::new_v4));
    if key.is_none() {
        note(&format!("key {id}"));
    }
    id
}

/// The wallet of this id or name.
pub(super) async fn find(store: &Store, reference: &Reference) -> anyhow::Result<Wallet> {
    let found = match reference {
        Reference::Id(id) => Wallets::find(store, WalletId::from(*id)).await,
        Reference::Name(name) => store.wallet_named(name.as_str()).await,
    };
    let found = found.context("the wallet was not looked up")?;
    found.ok_or_else(|| anyhow!("there is no wallet {reference}: `holdfast wallet list` shows all"))
}

fn show(output: Output, wallet: &Wallet) -> Result<(), CommandFailure> {
    output.object(&WalletView::for_operator(wallet), &fields(wallet))
}

fn fields(wallet: &Wallet) -> [(&'static str, String); 5] {
    [
        ("id", wallet.id.to_string()),
        ("name", wallet.name.clone()),
        ("currency", wallet.currency.to_string()),
        ("available", wallet.available.to_string()),
        ("held", wallet.held.to_string()),
    ]
}

/// A posting, and the wallet that it moved as it stands now.
async fn show_posting(
    output: Output,
    store: &Store,
    booked: Result<PostingReceipt, anyhow::Error>,
) -> Result<(), CommandFailure> {
    let PostingReceipt { posting, replayed } = booked?;
    let kind = posting.kind.label();
    let wallet = Wallets::find(store, posting.wallet).await;
    let wallet = wallet.with_context(|| {
        format!("the {kind} {} is made, but its wallet was not read", posting.id)
    })?;
    let mut fields = vec![(kind, posting.id.to_string())];
    match &posting.kind {
        PostingKind::Deposit => {}
        PostingKind::Refund(operation) => fields.push(("operation", operation.to_string())),
        PostingKind::Adjustment(reason) => fields.push(("reason", reason.clone())),
    }
    if let Some(wallet) = wallet {
        fields.extend([
            ("wallet", wallet.name),
            ("amount", posting.amount.to_string()),
            ("currency", wallet.currency.to_string()),
            ("available", wallet.available.to_string()),
        ]);
    }
    output.object(&PostingView::of(&posting, replayed), &fields)?;
    if replayed {
        note(&format!("this {kind} had been made before: nothing was changed"));
    }
    Ok(())
}
