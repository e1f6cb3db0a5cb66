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
    store: &(impl Journal + Wallets),
    wallet: &Wallet,
    amount: Micros,
    id: PostingId,
) -> anyhow::Result<(Posting, bool)> {
    let posting = Posting::new(id, wallet.id, PostingKind::Deposit, amount)
        .context("a deposit is of more than nothing")?;
    let change = Arc::new(Change::Posting(posting.clone()));
    // Once an answer was lost the funds may be there, whatever is said of a later offer.
    let mut was_lost = false;
    for _offer in 0..OFFERS_MAX {
        match store.commit(Arc::clone(&change)).await {
            Ok(_receipt) => return Ok((posting, false)),
            Err(CommitError::Conflict) if was_lost => {
                let again = |error| unknown(id).context(error);
                let known = store.posting(id).await.map_err(again)?;
                // The lost offer may be what made it: it counts as made now.
                return same(known, posting).map(|posting| (posting, false));
            }
            Err(CommitError::Conflict) => {
                let known = store.posting(id).await.context("the earlier posting was not read")?;
                return same(known, posting).map(|posting| (posting, true));
            }
            // Judged after the id: a posting that had landed would be a conflict.
            Err(CommitError::InsufficientFunds) => {
                return Err(anyhow!("the wallet cannot hold that much"));
            }
            Err(CommitError::Uncertain(_)) => was_lost = true,
            Err(CommitError::Overloaded) => {}
            Err(
                error @ (CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::Unavailable(_)),
            ) => {
                if !was_lost {
                    return Err(anyhow::Error::from(error).context("nothing was deposited"));
                }
            }
        }
        tokio::time::sleep(BETWEEN_OFFERS).await;
    }
    Err(unknown(id))
}

fn unknown(id: PostingId) -> anyhow::Error {
    anyhow!(
        "the store gave no verdict: run this again with `--key {id}`, which deposits at most once"
    )
}

/// The same posting again changes nothing; another one under its id is a mistake of whoever offers it.
fn same(known: Option<Posting>, offered: Posting) -> anyhow::Result<Posting> {
    match known {
        Some(known) if known == offered => Ok(known),
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

#[cfg(test)]
mod tests {
    use holdfast_testkit::memory::{Fault, MemoryJournal};
    use holdfast_testkit::sample;

    use super::*;

    const ID: PostingId = PostingId::from_u128(7);

    async fn offer(faults: &[Fault]) -> (MemoryJournal, anyhow::Result<bool>) {
        let store = MemoryJournal::with_funds(100);
        let wallet = store.wallet(sample::WALLET).unwrap();
        store.fail_next(faults.iter().copied());
        let outcome = deposit(&store, &wallet, Micros::new(5), ID).await;
        (store, outcome.map(|(_posting, replayed)| replayed))
    }

    fn available(store: &MemoryJournal) -> i64 {
        store.wallet(sample::WALLET).unwrap().available.get()
    }

    #[tokio::test]
    async fn after_a_lost_answer_nobody_is_told_that_nothing_was_deposited() {
        use Fault::{Landed, NotLanded, Overloaded, Unavailable};
        for lost in [Landed, NotLanded] {
            let faults = [lost, Unavailable, Overloaded, Unavailable, Unavailable];
            let (_store, outcome) = offer(&faults).await;
            let said = format!("{:#}", outcome.unwrap_err());
            assert!(said.contains(&format!("run this again with `--key {ID}`")), "{said}");
            assert!(!said.contains("nothing was deposited"), "{said}");
        }
    }

    #[tokio::test]
    async fn a_lost_answer_is_asked_for_again_and_counts_once() {
        for lost in [Fault::Landed, Fault::NotLanded, Fault::LandsLate] {
            let (store, outcome) = offer(&[lost, Fault::Unavailable]).await;
            assert!(!outcome.unwrap(), "{lost:?}: this very deposit made it");
            assert_eq!(available(&store), 105, "{lost:?}");
        }
    }

    #[tokio::test]
    async fn a_store_that_never_took_it_is_believed() {
        let (store, outcome) = offer(&[Fault::Unavailable]).await;
        let said = format!("{:#}", outcome.unwrap_err());
        assert!(said.starts_with("nothing was deposited"), "{said}");
        assert_eq!(available(&store), 100);
    }
}
