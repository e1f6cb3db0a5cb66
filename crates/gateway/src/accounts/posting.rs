//! Postings that an operator makes: deposits, refunds and adjustments. A posting is offered until
//! the store gives a verdict, and is in the book at most once.
//!
//! The id of a posting makes repetition safe: the store refuses a second row of one id, and the row
//! that is there is compared with the one that was offered. Equal rows are a replay; others are a
//! mistake of whoever chose the id.
//!
//! A commit can be lost on the way back. From then on no error may say that nothing was moved: a
//! later refusal judges the later offer, and the lost one may have landed. The message then has the
//! id, and asks to run the command again with it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::operation::{Change, Operation, Phase};
use holdfast_domain::ports::CommitError;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Journal, Micros, OperationId, PostingId, Wallets};
use holdfast_store::Store;

/// Offers of one posting to a store that gave no verdict.
const OFFERS_MAX: u32 = 5;
const BETWEEN_OFFERS: Duration = Duration::from_millis(500);

/// Verdict of the store on a posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PostingVerdict {
    /// A new row of the book.
    Made,
    /// An earlier command made the same posting under this id.
    Replayed,
    /// No row: too little is there to take, or the balance has no room for more.
    Refused,
}

/// A posting that is in the book.
#[derive(Debug)]
pub(crate) struct PostingReceipt {
    pub(crate) posting: Posting,
    /// True where an earlier command made it, and this one moved nothing.
    pub(crate) replayed: bool,
}

/// Adds funds once, however often this posting is offered.
pub(crate) async fn deposit(
    store: &(impl Journal + Wallets),
    wallet: &Wallet,
    amount: Micros,
    id: PostingId,
) -> anyhow::Result<PostingReceipt> {
    let posting = Posting::new(id, wallet.id, PostingKind::Deposit, amount)
        .context("a deposit is of more than nothing")?;
    match offer(store, &posting).await? {
        PostingVerdict::Refused => Err(no_room(&posting)),
        verdict @ (PostingVerdict::Made | PostingVerdict::Replayed) => Ok(booked(posting, verdict)),
    }
}

/// Gives back a part of what an operation was charged, to the wallet that paid.
pub(crate) async fn refund(
    store: &Store,
    operation: OperationId,
    amount: Micros,
    id: PostingId,
) -> anyhow::Result<PostingReceipt> {
    let snapshot = store.load(operation).await.context("the operation was not read")?;
    let operation = snapshot.operation.ok_or_else(|| {
        anyhow!("nothing was refunded: there is no operation {operation}, `holdfast operation list` shows them")
    })?;
    let charge = charge(&operation)?;
    let kind = PostingKind::Refund(operation.id);
    let posting = Posting::new(id, operation.wallet, kind, amount)
        .context("a refund is of more than nothing")?;
    let verdict = offer(store, &posting).await?;
    if verdict != PostingVerdict::Refused {
        return Ok(booked(posting, verdict));
    }
    let refunded = store.refunded(operation.id).await;
    let refunded = refunded.context("nothing was refunded: the earlier refunds were not read")?;
    let left = charge.minus(refunded).unwrap_or(Micros::ZERO);
    // Enough is left of the charge, so the wallet was full: the two refusals have one verdict.
    if amount <= left {
        return Err(no_room(&posting));
    }
    let currency = operation.price.currency;
    Err(anyhow!(
        "nothing was refunded: {left} {currency} is left of the charge of {charge} {currency}"
    ))
}

/// Gives to or takes from what is available, for a reason.
pub(crate) async fn adjust(
    store: &Store,
    wallet: &Wallet,
    amount: Micros,
    reason: &str,
    id: PostingId,
) -> anyhow::Result<PostingReceipt> {
    let kind = PostingKind::Adjustment(reason.to_owned());
    let posting =
        Posting::new(id, wallet.id, kind, amount).context("an adjustment is not of nothing")?;
    let verdict = offer(store, &posting).await?;
    if verdict != PostingVerdict::Refused {
        return Ok(booked(posting, verdict));
    }
    if amount > Micros::ZERO {
        return Err(no_room(&posting));
    }
    let now = Wallets::find(store, wallet.id).await;
    let now = now.context("nothing was adjusted: the wallet was not read")?;
    let available = now.map_or(Micros::ZERO, |wallet| wallet.available);
    Err(anyhow!("nothing was adjusted: the wallet has {available} {} available", wallet.currency))
}

/// Charge of a completed operation; an operation in any other phase has none to give back.
fn charge(operation: &Operation) -> anyhow::Result<Micros> {
    match &operation.phase {
        Phase::Completed { usage, .. } => Ok(usage.charge),
        phase @ (Phase::Leased
        | Phase::Recorded(_)
        | Phase::Open
        | Phase::Refused { .. }
        | Phase::Abandoned { .. }) => Err(anyhow!(
            "nothing was refunded: operation {} is {}, only a completed one was charged",
            operation.id,
            phase.label()
        )),
    }
}

fn booked(posting: Posting, verdict: PostingVerdict) -> PostingReceipt {
    PostingReceipt { posting, replayed: verdict == PostingVerdict::Replayed }
}

async fn offer(
    store: &(impl Journal + Wallets),
    posting: &Posting,
) -> anyhow::Result<PostingVerdict> {
    let id = posting.id;
    let change = Arc::new(Change::Posting(posting.clone()));
    // Once an answer was lost the posting may be there, whatever is said of a later offer.
    let mut was_lost = false;
    for _offer in 0..OFFERS_MAX {
        match store.commit(Arc::clone(&change)).await {
            Ok(_receipt) => return Ok(PostingVerdict::Made),
            Err(CommitError::Conflict) if was_lost => {
                let again = |error| unknown(id).context(error);
                let known = store.posting(id).await.map_err(again)?;
                // The lost offer may be what made it: it counts as made now.
                return same(known, posting).map(|()| PostingVerdict::Made);
            }
            Err(CommitError::Conflict) => {
                let known = store.posting(id).await.context("the earlier posting was not read")?;
                return same(known, posting).map(|()| PostingVerdict::Replayed);
            }
            // Judged after the id: a posting that had landed would be a conflict.
            Err(CommitError::InsufficientFunds) => return Ok(PostingVerdict::Refused),
            Err(CommitError::Uncertain(_)) => was_lost = true,
            // Turned away before it was queued: the offer cannot have landed, so nothing was lost.
            Err(CommitError::Overloaded) => {}
            Err(
                error @ (CommitError::LimitReached(_)
                | CommitError::Collision
                | CommitError::TooLarge
                | CommitError::Unavailable(_)),
            ) => {
                if !was_lost {
                    return Err(anyhow::Error::from(error).context(nothing(&posting.kind)));
                }
            }
        }
        tokio::time::sleep(BETWEEN_OFFERS).await;
    }
    Err(unknown(id))
}

const fn nothing(kind: &PostingKind) -> &'static str {
    match kind {
        PostingKind::Deposit => "nothing was deposited",
        PostingKind::Refund(_) => "nothing was refunded",
        PostingKind::Adjustment(_) => "nothing was adjusted",
    }
}

fn no_room(posting: &Posting) -> anyhow::Error {
    anyhow!("{}: the wallet cannot hold that much", nothing(&posting.kind))
}

fn unknown(id: PostingId) -> anyhow::Error {
    anyhow!(
        "the store gave no verdict: run this again with `--key {id}`, it is booked at most once"
    )
}

/// The same posting again changes nothing; another one under its id is a mistake of whoever offers
/// it.
fn same(known: Option<Posting>, offered: &Posting) -> anyhow::Result<()> {
    let nothing = nothing(&offered.kind);
    match known {
        Some(known) if known == *offered => Ok(()),
        Some(known) => {
            let Posting { id, wallet, kind, amount } = known;
            let known = match kind {
                PostingKind::Deposit => format!("a deposit of {amount} to wallet {wallet}"),
                PostingKind::Refund(operation) => {
                    format!("a refund of {amount} for operation {operation}")
                }
                PostingKind::Adjustment(reason) => {
                    format!("an adjustment of {amount} to wallet {wallet} ({reason})")
                }
            };
            Err(anyhow!("{nothing}: {id} is {known} already, use another --key"))
        }
        None => Err(anyhow!("{nothing}: {} is in use, use another --key", offered.id)),
    }
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
        (store, outcome.map(|booked| booked.replayed))
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
