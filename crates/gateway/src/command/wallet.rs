//! `holdfast wallet`

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::operation::Change;
use holdfast_domain::ports::{CommitError, CreateError, LedgerSource};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Journal, Micros, PostingId, WalletId, Wallets};
use holdfast_store::Store;
use holdfast_wire::api::{LedgerEntryView, PostingView, WalletView, rfc3339};
use uuid::Uuid;

use crate::cli;
use crate::cli::value::Reference;
use crate::failure::Failure;
use crate::output::{Output, note};

/// Offers of one posting to a store that gave no verdict.
const OFFERS_MAX: u32 = 5;
const BETWEEN_OFFERS: Duration = Duration::from_millis(500);

pub(super) async fn run(
    output: Output,
    store: &Store,
    command: cli::Wallet,
) -> Result<(), Failure> {
    match command {
        cli::Wallet::Create { name, currency } => {
            let wallet = create(store, name.as_str(), currency).await?;
            show(output, &wallet)
        }
        cli::Wallet::Deposit { wallet, amount, key } => {
            let wallet = find(store, &wallet).await?;
            let id = PostingId::from(key.unwrap_or_else(Uuid::new_v4));
            let (posting, replayed) = deposit(store, &wallet, amount.micros(), id).await?;
            let now = Wallets::find(store, wallet.id).await.context("the wallet was not read")?;
            deposited(output, &now.unwrap_or(wallet), &posting, replayed)
        }
        cli::Wallet::Show { wallet } => show(output, &find(store, &wallet).await?),
        cli::Wallet::List => {
            let wallets = Wallets::list(store).await.context("wallets were not listed")?;
            let views: Vec<_> = wallets.iter().map(WalletView::for_operator).collect();
            let rows: Vec<_> =
                wallets.iter().map(|wallet| fields(wallet).map(|(_, v)| v)).collect();
            output.list(&views, ["id", "name", "currency", "available", "held"], &rows)
        }
        cli::Wallet::Ledger { wallet, limit } => ledger(output, store, &wallet, limit).await,
    }
}

/// Creates an empty wallet.
pub(crate) async fn create(
    store: &Store,
    name: &str,
    currency: Currency,
) -> anyhow::Result<Wallet> {
    let id = WalletId::from(Uuid::now_v7());
    match Wallets::create(store, id, name, currency).await {
        Ok(wallet) => Ok(wallet),
        Err(CreateError::NameTaken) => Err(anyhow!("there is a wallet named {name} already")),
        Err(error @ (CreateError::NoWallet | CreateError::Unavailable(_))) => {
            Err(anyhow::Error::from(error).context("the wallet was not created"))
        }
    }
}

/// Adds funds once, however often this posting is offered; says whether it had been made before.
pub(crate) async fn deposit(
    store: &Store,
    wallet: &Wallet,
    amount: Micros,
    id: PostingId,
) -> anyhow::Result<(Posting, bool)> {
    let posting = Posting::new(id, wallet.id, PostingKind::Deposit, amount)
        .context("a deposit is of more than nothing")?;
    let change = Arc::new(Change::Posting(posting.clone()));
    for _offer in 0..OFFERS_MAX {
        match store.commit(Arc::clone(&change)).await {
            Ok(_receipt) => return Ok((posting, false)),
            Err(CommitError::Conflict) => return replay(store, posting).await,
            Err(CommitError::InsufficientFunds) => {
                return Err(anyhow!("the wallet cannot hold that much"));
            }
            Err(CommitError::Uncertain(_) | CommitError::Overloaded) => {
                tokio::time::sleep(BETWEEN_OFFERS).await;
            }
            Err(
                error @ (CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::Unavailable(_)),
            ) => return Err(anyhow::Error::from(error).context("nothing was deposited")),
        }
    }
    Err(anyhow!(
        "the store gave no verdict: run this again with `--key {id}`, which deposits at most once"
    ))
}

/// The same posting again changes nothing; another one under its id is a mistake of whoever offers it.
async fn replay(store: &Store, offered: Posting) -> anyhow::Result<(Posting, bool)> {
    let known = store.posting(offered.id).await.context("the earlier posting was not read")?;
    match known {
        Some(known) if known == offered => Ok((known, true)),
        Some(known) => Err(anyhow!(
            "nothing was deposited: {} is a {} of {} to wallet {} already, use another --key",
            known.id,
            known.kind.label(),
            known.amount,
            known.wallet
        )),
        None => Err(anyhow!("nothing was deposited: {} is in use, use another --key", offered.id)),
    }
}

/// The wallet of this id or name.
pub(super) async fn find(store: &Store, reference: &Reference) -> anyhow::Result<Wallet> {
    let found = match reference {
        Reference::Id(id) => Wallets::find(store, WalletId::from(*id)).await,
        Reference::Name(name) => Wallets::list(store)
            .await
            .map(|all| all.into_iter().find(|wallet| wallet.name == name.as_str())),
    };
    let found = found.context("the wallet was not looked up")?;
    found.ok_or_else(|| anyhow!("there is no wallet {reference}: `holdfast wallet list` shows all"))
}

fn show(output: Output, wallet: &Wallet) -> Result<(), Failure> {
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

fn deposited(
    output: Output,
    wallet: &Wallet,
    posting: &Posting,
    replayed: bool,
) -> Result<(), Failure> {
    let fields = [
        ("deposit", posting.id.to_string()),
        ("wallet", wallet.name.clone()),
        ("amount", posting.amount.to_string()),
        ("currency", wallet.currency.to_string()),
        ("available", wallet.available.to_string()),
    ];
    output.object(&PostingView::of(posting, replayed), &fields)?;
    if replayed {
        note("this deposit had been made before: nothing was added");
    }
    Ok(())
}

async fn ledger(
    output: Output,
    store: &Store,
    wallet: &Reference,
    limit: u32,
) -> Result<(), Failure> {
    let wallet = find(store, wallet).await?;
    let entries = store.transfers(wallet.id, limit).await.context("the ledger was not read")?;
    let views: Vec<_> = entries.iter().map(LedgerEntryView::of).collect();
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| {
            let source = match entry.source {
                LedgerSource::Operation(id, generation) => format!("operation {id}/{generation}"),
                LedgerSource::Posting(id) => format!("posting {id}"),
            };
            let (debit, credit) = (entry.debit.label(), entry.credit.label());
            [
                rfc3339(entry.at),
                entry.kind.to_owned(),
                debit.to_owned(),
                credit.to_owned(),
                entry.amount.to_string(),
                source,
            ]
        })
        .collect();
    output.list(&views, ["at", "kind", "debit", "credit", "amount", "source"], &rows)
}
