//! Restores: an older copy of the ledger that is served again.
//!
//! A copy knows no request key that was bound after it was made, and request keys are random: an unknown key is either
//! new or lost, and no row shows which. A lost one may have run and been charged. So a restore opens a window:
//!
//! ```text
//! copy made ───── lost keys ───── restored_at ═════ window ═════ unknown_until
//!                                 unknown keys of the copy's API keys: refused │ run
//!                                 API keys issued since:   run                 │ run
//! ```
//!
//! The window is of the API keys that the copy knows: an API key that was issued after the restore has no lost request
//! key. A claim carries the end of the window that its API key was read with ([`Claim`](crate::operation::Claim)), and
//! `decide` judges it by the database's clock. A declared restore moves the revision of every wallet's limits, so that
//! a store refuses each claim that was made of a read before it.
//!
//! Never: a bound key that gets another answer than before; a window that ends by a process's own clock.
//!
//! ```
//! use std::time::Duration;
//!
//! use holdfast_domain::Restores as _;
//! use holdfast_domain::conduct::{ClaimError, Conduct};
//! use holdfast_domain::restore::UnknownKeys;
//! use holdfast_testkit::{MemoryJournal, NoPause, sample};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), holdfast_domain::ports::Unavailable> {
//! let journal = MemoryJournal::with_funds(1_000);
//! let day = Duration::from_secs(86_400);
//! let restore = journal.declare(UnknownKeys::Refuse(day)).await?;
//! assert_eq!(restore.unknown_until, restore.restored_at.after(day));
//!
//! // Within the window a key that the copy does not know neither runs nor is bound.
//! let claim = sample::claim().unknown_until(Some(restore.unknown_until)).build();
//! let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
//! let refused = conduct.claim(&sample::order(&claim)).await;
//! assert!(matches!(refused, Err(ClaimError::LedgerRestored)));
//!
//! // The operator knows that no key was lost, and ends every window.
//! journal.declare(UnknownKeys::Allow).await?;
//! assert_eq!(journal.open_window().await?, None);
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use crate::Timestamp;

/// Rule for request keys that a restored copy does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownKeys {
    /// They are refused for so long.
    Refuse(Duration),
    /// They run at once, and windows that are open end.
    Allow,
}

impl UnknownKeys {
    /// Length of the window.
    #[must_use]
    pub const fn window(self) -> Duration {
        match self {
            Self::Refuse(window) => window,
            Self::Allow => Duration::ZERO,
        }
    }
}

/// A restore as the ledger keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restore {
    /// Moment of the restore. API keys that were created later have no lost request key.
    pub restored_at: Timestamp,
    /// End of its window: from then on unknown request keys run.
    pub unknown_until: Timestamp,
}
