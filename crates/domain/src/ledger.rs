//! The book: transfers from one account to another, append-only, balanced by construction.
//!
//! Only wallets have balance rows. `funding`, `revenue` and `adjustments` are names in transfers
//! and their balances are sums, so that no row is shared by all wallets and no two tenants wait for
//! one.
//!
//! ```text
//! funding ──deposit──▶ available ──hold──▶ held ──settle──▶ revenue ──refund──▶ available
//!                          ▲                 └──rest, release, lapse──▶ available
//! adjustments ─────────────┘ (or back, with a reason)
//! ```
//!
//! For every wallet: available ≥ 0, held is the sum of its active holds, and available + held +
//! captured is deposits + refunds + adjustments. A transfer is never changed; a correction is a new
//! one. Its key is (operation, kind, generation) or the posting's own id, inserted in the
//! transaction of its effect: a repeated key stops the effect. Never a transfer of zero, never an
//! overdraft.

use crate::{Micros, OperationId, PostingId, WalletId};

/// Account that money comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// Payments from outside.
    Funding,
    /// Amount that a wallet can spend.
    Available,
    /// Amount that a wallet's running operations reserve.
    Held,
    /// Charges.
    Revenue,
    /// Corrections with a reason.
    Adjustments,
}

impl Account {
    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Funding => "funding",
            Self::Available => "available",
            Self::Held => "held",
            Self::Revenue => "revenue",
            Self::Adjustments => "adjustments",
        }
    }
}

/// Reason why an operation moves money; with the operation and its generation the transfer's
/// permanent key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// available → held, at admission.
    Hold,
    /// held → revenue, the charge.
    Settle,
    /// held → available, what the charge left of the hold.
    Rest,
    /// held → available, the whole hold of what was refused or proven not to have run.
    Release,
    /// held → available, the whole hold of a run that was given up: its outcome is unknown. The ledger
    /// distinguishes it from a release, so that no row that means *given up* can be altered into *did not run*.
    Lapse,
}

impl TransferKind {
    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Settle => "settle",
            Self::Rest => "rest",
            Self::Release => "release",
            Self::Lapse => "lapse",
        }
    }

    /// The account that pays, and the one that is paid.
    #[must_use]
    pub const fn accounts(self) -> (Account, Account) {
        match self {
            Self::Hold => (Account::Available, Account::Held),
            Self::Settle => (Account::Held, Account::Revenue),
            Self::Rest | Self::Release | Self::Lapse => (Account::Held, Account::Available),
        }
    }
}

/// Transfer: one debit, one credit, one positive amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Reason.
    pub kind: TransferKind,
    /// Account that pays.
    pub debit: Account,
    /// Account that is paid.
    pub credit: Account,
    /// Amount; above zero.
    pub amount: Micros,
}

impl Transfer {
    /// A transfer between the accounts of its kind.
    #[must_use]
    pub const fn new(kind: TransferKind, amount: Micros) -> Self {
        let (debit, credit) = kind.accounts();
        Self { kind, debit, credit, amount }
    }
}

/// Move of a wallet's money by an operation's transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Funds {
    /// No money moves.
    Unmoved,
    /// Reserve this much; refused when that much is not available.
    Hold(Micros),
    /// Take the charge out of the hold and give the rest back.
    Capture {
        /// Amount that was held.
        hold: Micros,
        /// Part of it that is kept; the hold at most.
        charge: Micros,
    },
    /// Give the whole hold back: it was refused, or did not run.
    Release(Micros),
    /// Give the whole hold back of a run that is given up.
    Lapse(Micros),
}

impl Funds {
    /// Change of the wallet's available and held amounts.
    #[must_use]
    pub fn balance_change(&self) -> BalanceChange {
        let (available, held) = match *self {
            Self::Unmoved => (Micros::ZERO, Micros::ZERO),
            // Not checked here: the store refuses what would come out below zero, by what it has read.
            Self::Hold(hold) => (hold.negated(), hold),
            Self::Capture { hold, charge } => {
                // A charge is capped by its hold before it gets here, so the rest is never
                // negative.
                (hold.minus(charge).unwrap_or(Micros::ZERO), hold.negated())
            }
            Self::Release(hold) | Self::Lapse(hold) => (hold, hold.negated()),
        };
        BalanceChange { available, held }
    }

    /// Transfers of the funds in the ledger: at most two, none of zero.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + use<> {
        let (first, second) = match *self {
            Self::Unmoved => (None, None),
            Self::Hold(hold) => (Some(Transfer::new(TransferKind::Hold, hold)), None),
            Self::Capture { hold, charge } => {
                let rest = hold.minus(charge).unwrap_or(Micros::ZERO);
                let settle = Transfer::new(TransferKind::Settle, charge);
                (Some(settle), Some(Transfer::new(TransferKind::Rest, rest)))
            }
            Self::Release(hold) => (Some(Transfer::new(TransferKind::Release, hold)), None),
            Self::Lapse(hold) => (Some(Transfer::new(TransferKind::Lapse, hold)), None),
        };
        // A charge of nothing, or one as large as its hold, leaves one transfer: the ledger has
        // none of zero.
        first.into_iter().chain(second).filter(|transfer| transfer.amount > Micros::ZERO)
    }
}

/// Amounts that are added to a wallet's two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceChange {
    /// To what is available.
    pub available: Micros,
    /// To what is held.
    pub held: Micros,
}

/// Posting: money that moves without an operation running. Its id is its permanent key. It is made by a command of
/// [`Administration`](crate::admin::Administration).
///
/// ```
/// use holdfast_domain::ledger::{Posting, PostingKind};
/// use holdfast_domain::{Journal, Micros, PostingId};
/// use holdfast_testkit::{Commands as _, MemoryJournal, sample};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let journal = MemoryJournal::with_funds(1_000);
/// let (id, kind) = (PostingId::from_u128(1), PostingKind::Deposit);
/// let deposit = Posting::new(id, sample::WALLET, kind, Micros::new(500))?;
///
/// assert!(!journal.post(&deposit).await?.replayed);
/// assert!(journal.post(&deposit).await?.replayed);
/// assert_eq!(journal.wallet(sample::WALLET).unwrap().available, Micros::new(1_500));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// Id, chosen by the poster; the same id is the same posting.
    pub id: PostingId,
    /// Wallet whose balance moves.
    pub wallet: WalletId,
    /// Reason.
    pub kind: PostingKind,
    /// Amount; above zero, for adjustments also below. Never zero.
    pub amount: Micros,
}

impl Posting {
    /// A posting whose amount is of its kind.
    ///
    /// # Errors
    ///
    /// [`BadPosting`] for any other amount.
    pub fn new(
        id: PostingId,
        wallet: WalletId,
        kind: PostingKind,
        amount: Micros,
    ) -> Result<Self, BadPosting> {
        if kind.allows(amount) { Ok(Self { id, wallet, kind, amount }) } else { Err(BadPosting) }
    }
}

/// A posting of zero, or a deposit or refund that takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a posting moves something, and a deposit or refund gives it")]
pub struct BadPosting;

/// Reason why a posting moves money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostingKind {
    /// funding → available.
    Deposit,
    /// revenue → available, for an operation that was charged; all its refunds stay within the charge.
    Refund(OperationId),
    /// adjustments ↔ available, with a reason; it cannot overdraw.
    Adjustment(String),
}

impl PostingKind {
    /// The name in rows and answers.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Refund(_) => "refund",
            Self::Adjustment(_) => "adjustment",
        }
    }

    /// True if a posting of this kind may be of this amount.
    #[must_use]
    pub fn allows(&self, amount: Micros) -> bool {
        match self {
            Self::Deposit | Self::Refund(_) => amount > Micros::ZERO,
            // Of nothing is no posting: its id would be used up, and the book say nothing.
            Self::Adjustment(_) => amount != Micros::ZERO,
        }
    }

    /// The account on the other side of the wallet's available amount.
    #[must_use]
    pub const fn counterpart(&self) -> Account {
        match self {
            Self::Deposit => Account::Funding,
            Self::Refund(_) => Account::Revenue,
            Self::Adjustment(_) => Account::Adjustments,
        }
    }
}
