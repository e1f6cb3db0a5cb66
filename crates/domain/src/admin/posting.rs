//! Postings as people make them: the money, and its details.

use crate::ledger::{Posting, PostingKind};
use crate::text::{is_same, normal_form, spellings};
use crate::{Currency, Micros, WalletId};

/// Reference of a deposit in an outer system. A pair is used once, for ever: spellings of one text
/// ([`crate::text`]) are equal, and so are sources that differ in upper and lower case.
///
/// New references consist of visible ASCII characters: a payment's id has no two spellings that look alike. References
/// in rows of earlier versions have any printable text.
#[derive(Debug, Clone)]
pub struct DepositReference {
    /// System that the payment came through, such as `stripe` or `cli`.
    pub source: String,
    /// Id of the payment there.
    pub external_reference: String,
    /// Both as they were typed. A row from before texts had one form has them like that.
    typed: [String; 2],
    /// True for one that a row has: what it may be spelled like was judged when it was booked.
    is_booked: bool,
}

impl DepositReference {
    /// A reference that is to be booked, in the normal form of both its texts.
    #[must_use]
    pub fn new(source: &str, external_reference: &str) -> Self {
        Self {
            source: normal_form(source).into_owned(),
            external_reference: normal_form(external_reference).into_owned(),
            typed: [source.to_owned(), external_reference.to_owned()],
            is_booked: false,
        }
    }

    /// A reference that was booked, as its row has it.
    #[must_use]
    pub fn booked(source: String, external_reference: String) -> Self {
        let typed = [source.clone(), external_reference.clone()];
        Self { source, external_reference, typed, is_booked: true }
    }

    /// The part that cannot be booked, by the name of its field: it has characters beyond the visible ones of
    /// ASCII, which people and systems spell in several ways.
    #[must_use]
    pub fn unbookable(&self) -> Option<&'static str> {
        let fields = ["source", "external_reference"];
        // As typed: the normal form turns some characters into ASCII, such as the Kelvin sign into
        // K, and a reference that was typed with one would be booked under another text.
        let is_bookable =
            |text: &String| self.is_booked || text.bytes().all(|byte| byte.is_ascii_graphic());
        let parts = fields.into_iter().zip(&self.typed);
        parts.into_iter().find(|(_field, text)| !is_bookable(text)).map(|(field, _text)| field)
    }

    /// True if both its texts are ASCII, which has one spelling of each.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.typed.iter().all(|text| text.is_ascii())
    }

    /// Spellings under which rows may have the source and the id.
    #[must_use]
    pub fn spellings(&self) -> [Vec<String>; 2] {
        self.typed.each_ref().map(|text| spellings(text))
    }
}

impl PartialEq for DepositReference {
    fn eq(&self, other: &Self) -> bool {
        normal_form(&self.source).eq_ignore_ascii_case(&normal_form(&other.source))
            && is_same(&self.external_reference, &other.external_reference)
    }
}

impl Eq for DepositReference {}

/// Details of a posting beside its money. None of them moves any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostingDetails {
    /// Reference of a deposit.
    pub reference: Option<DepositReference>,
    /// Reason, for later readers. An adjustment's own is part of the posting.
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
    /// Most, in micros, that the actor's refunds of a UTC day in the wallet's currency come to, this
    /// one among them; `None`: as much as was charged.
    pub allowance: Option<Micros>,
    /// Currency of the amount; `None` if the command has none. Compared with the wallet's, and not kept.
    pub currency: Option<Currency>,
}

/// Source of deposits that came through no other system: their reference is their own id.
pub const OWN_SOURCE: &str = "cli";

/// A posting in the ledger, with the details beyond its money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPosting {
    /// The money.
    pub posting: Posting,
    /// Details beside it; `None` for one that was made without any, through the ports of the domain
    /// or before there were details.
    pub details: Option<PostingDetails>,
}

impl KnownPosting {
    /// True if it equals `new` in full, so that a repetition is answered with it.
    #[must_use]
    pub fn is_all_of(&self, new: &NewPosting) -> bool {
        let agrees = match &self.details {
            Some(details) => details.agrees_with(&new.details),
            // No reference was booked with it: answered with it, a payment from outside would pass
            // for booked, and be booked once more under another key. The command line's own
            // reference is the id, which is booked.
            None => {
                let PostingDetails { reference, reason, note } = &new.details;
                let is_own = reference.as_ref().is_none_or(|reference| {
                    reference.source == OWN_SOURCE
                        && reference.external_reference == self.posting.id.to_string()
                });
                is_own && reason.is_none() && note.is_none()
            }
        };
        agrees && self.posting == new.posting
    }
}

/// Operation that a refund is for, with what is left to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundableOperation {
    /// Wallet that paid.
    pub wallet: WalletId,
    /// Charge; `None` if there was none: not completed, or not yet.
    pub charge: Option<Micros>,
    /// Sum of the refunds so far.
    pub refunded: Micros,
}

impl Posting {
    /// Fields that the trail has of it, which never change: what moves money, and for what.
    #[must_use]
    pub fn trail_fields(&self) -> [(&'static str, Option<String>); 4] {
        let operation = match &self.kind {
            PostingKind::Refund(operation) => Some(operation.to_string()),
            PostingKind::Deposit | PostingKind::Adjustment(_) => None,
        };
        [
            ("kind", Some(self.kind.label().to_owned())),
            ("wallet_id", Some(self.wallet.to_string())),
            ("amount_micros", Some(self.amount.get().to_string())),
            ("operation_id", operation),
        ]
    }
}

impl PostingDetails {
    /// True for the same details, however their texts are spelled.
    fn agrees_with(&self, other: &Self) -> bool {
        let is_same = |pair: [&Option<String>; 2]| match pair {
            [Some(one), Some(other)] => is_same(one, other),
            [None, None] => true,
            [Some(_), None] | [None, Some(_)] => false,
        };
        self.reference == other.reference
            && is_same([&self.reason, &other.reason])
            && is_same([&self.note, &other.note])
    }

    /// Fields of the audit log for this posting's details beyond its money.
    #[must_use]
    pub fn trail_fields(&self, posting: &Posting) -> [(&'static str, Option<String>); 4] {
        let own_reason = match &posting.kind {
            PostingKind::Deposit | PostingKind::Refund(_) => None,
            PostingKind::Adjustment(reason) => Some(reason.clone()),
        };
        let (source, external_reference) = self
            .reference
            .clone()
            .map(|reference| (reference.source, reference.external_reference))
            .unzip();
        [
            ("source", source),
            ("external_reference", external_reference),
            ("reason", own_reason.or_else(|| self.reason.clone())),
            ("note", self.note.clone()),
        ]
    }
}
