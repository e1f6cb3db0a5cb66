//! Postings as people make them: the money, and what they say beside it.

use crate::ledger::Posting;
use crate::{Micros, WalletId};

/// Reference of a deposit in an outer system. A pair is used once, for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DepositReference {
    /// System that the payment came through, such as `stripe` or `cli`.
    pub source: String,
    /// Id of the payment there.
    pub external_reference: String,
}

/// Details of a posting beside its money. None of them moves any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostingDetails {
    /// Reference of a deposit.
    pub reference: Option<DepositReference>,
    /// Reason, for whoever asks why. An adjustment's own is part of the posting.
    pub reason: Option<String>,
    /// Note, such as the number of an invoice.
    pub note: Option<String>,
}

/// A posting to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPosting {
    /// The money. Its id is the request key of the command.
    pub posting: Posting,
    /// Details beside it.
    pub details: PostingDetails,
}

/// Operation that a refund is for, with what is left to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundableOperation {
    /// Wallet that paid.
    pub wallet: WalletId,
    /// Charge; `None` where nothing was charged: not completed, or not yet.
    pub charge: Option<Micros>,
    /// Sum of the refunds so far.
    pub refunded: Micros,
}
