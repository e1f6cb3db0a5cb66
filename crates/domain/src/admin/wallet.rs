//! A wallet with what people set on it.

use super::field_change::{Fields, TrailFields, moment};
use super::{AccountRefusal, ResourceId};
use crate::admin::event::LowBalance;
use crate::limits::SpendLimit;
use crate::wallet::Wallet;
use crate::{Currency, Micros, Timestamp, WalletId};

/// A wallet as administration sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletRecord {
    /// The wallet and its balance.
    pub wallet: Wallet,
    /// Id in another system, such as your customers' database; unique.
    pub external_id: Option<String>,
    /// Threshold of `wallet.low`, in micros; `None`: no event.
    pub low_balance: Option<Micros>,
    /// Most that a key may spend that is issued by an actor who is neither owner nor the holder's
    /// administrator; `None`: they issue none.
    pub key_spend: Option<SpendLimit>,
    /// Number of edits.
    pub edited: u32,
    /// Moment of its creation.
    pub created_at: Timestamp,
    /// Moment since which it is closed, for good.
    pub closed_at: Option<Timestamp>,
}

/// State of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalletState {
    /// New runs are let in.
    Active,
    /// New runs are refused; what runs finishes.
    Suspended,
    /// Ended for good.
    Closed,
}

impl WalletRecord {
    /// State of the wallet.
    #[must_use]
    pub const fn state(&self) -> WalletState {
        match (self.closed_at, self.wallet.suspended_at) {
            (Some(_), _) => WalletState::Closed,
            (None, Some(_)) => WalletState::Suspended,
            (None, None) => WalletState::Active,
        }
    }

    /// True for one that is open and below its own threshold.
    #[must_use]
    pub fn runs_low(&self) -> bool {
        let Some(threshold) = self.low_balance.filter(|_| self.closed_at.is_none()) else {
            return false;
        };
        let Wallet { id: wallet, available, held, .. } = self.wallet;
        LowBalance { wallet, available, held, threshold }.is_low([available, held])
    }
}

/// Edit of a wallet: a field that is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WalletPatch {
    /// Another name.
    pub name: Option<String>,
    /// Another external id, or none.
    pub external_id: Option<Option<String>>,
    /// Another threshold, or none.
    pub low_balance: Option<Option<Micros>>,
    /// Another bound on the spend of keys, or none.
    pub key_spend: Option<Option<SpendLimit>>,
}

impl WalletRecord {
    /// An empty wallet with these settings. Its moment is set as it is made.
    #[must_use]
    pub fn new(id: WalletId, name: String, currency: Currency, settings: WalletPatch) -> Self {
        let (available, held) = (Micros::ZERO, Micros::ZERO);
        let empty = Self {
            wallet: Wallet { id, name, currency, available, held, suspended_at: None },
            external_id: None,
            low_balance: None,
            key_spend: None,
            edited: 0,
            created_at: Timestamp::from_micros(0),
            closed_at: None,
        };
        empty.with(settings)
    }

    fn with(mut self, patch: WalletPatch) -> Self {
        let WalletPatch { name, external_id, low_balance, key_spend } = patch;
        self.wallet.name = name.unwrap_or(self.wallet.name);
        self.external_id = external_id.unwrap_or(self.external_id);
        self.low_balance = low_balance.unwrap_or(self.low_balance);
        self.key_spend = key_spend.unwrap_or(self.key_spend);
        self
    }

    /// The wallet after an edit.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::WalletClosed`] for a closed one.
    pub fn edit(&self, patch: &WalletPatch) -> Result<Self, AccountRefusal> {
        self.refuse_closed()?;
        Ok(self.clone().with(patch.clone()).counted(self))
    }

    /// The wallet with new runs stopped, since the earliest moment of such a request.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::WalletClosed`] for a closed one.
    pub fn suspend(&self, now: Timestamp) -> Result<Self, AccountRefusal> {
        self.refuse_closed()?;
        let mut after = self.clone();
        after.wallet.suspended_at = after.wallet.suspended_at.or(Some(now));
        Ok(after.counted(self))
    }

    /// The wallet with new runs let in.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::WalletClosed`] for a closed one.
    pub fn resume(&self) -> Result<Self, AccountRefusal> {
        self.refuse_closed()?;
        let mut after = self.clone();
        after.wallet.suspended_at = None;
        Ok(after.counted(self))
    }

    /// The wallet closed for good. It stays suspended from then on: no operation runs on it.
    ///
    /// # Errors
    ///
    /// [`AccountRefusal::WalletNotEmpty`] while anything is available or held.
    pub fn close(&self, now: Timestamp) -> Result<Self, AccountRefusal> {
        if self.closed_at.is_some() {
            return Ok(self.clone());
        }
        let Wallet { available, held, .. } = self.wallet;
        // Held funds come back as their operations end: a closed wallet takes no posting, and that
        // balance could never be taken out.
        if available != Micros::ZERO || held != Micros::ZERO {
            return Err(AccountRefusal::WalletNotEmpty { available, held });
        }
        let mut after = self.clone();
        after.wallet.suspended_at = after.wallet.suspended_at.or(Some(now));
        after.closed_at = Some(now);
        Ok(after.counted(self))
    }

    /// Refuses all that a closed wallet takes no more: edits, API keys, deposits.
    pub(crate) fn refuse_closed(&self) -> Result<(), AccountRefusal> {
        if self.closed_at.is_some() { Err(AccountRefusal::WalletClosed) } else { Ok(()) }
    }

    /// Counts an edit if any field has changed.
    fn counted(mut self, before: &Self) -> Self {
        // An edit without a change keeps its number, or a repeated command would make the number
        // that other actors have seen out of date.
        if self != *before {
            self.edited = before.edited.saturating_add(1);
        }
        self
    }
}

impl TrailFields for WalletRecord {
    fn thing(&self) -> ResourceId {
        ResourceId::Wallet(self.wallet.id)
    }

    /// Balances are not among them: postings have those.
    fn trail_fields(&self) -> Fields {
        vec![
            ("name", Some(self.wallet.name.clone())),
            ("external_id", self.external_id.clone()),
            ("currency", Some(self.wallet.currency.to_string())),
            ("low_balance_micros", self.low_balance.map(|micros| micros.get().to_string())),
            ("key_spend_micros", self.key_spend.map(|spend| spend.micros.get().to_string())),
            ("key_spend_window", self.key_spend.map(|spend| spend.window.label().to_owned())),
            ("suspended_at", moment(self.wallet.suspended_at)),
            ("closed_at", moment(self.closed_at)),
        ]
    }
}
