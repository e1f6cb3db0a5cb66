//! Wallets: made, found, listed, edited, suspended, closed.
//!
//! A wallet is found by its id or its name, and then checked against the reach of the principal: one that is
//! out of reach is *not found*, so that the answer does not reveal that it exists. A change goes to the store
//! with only the id: a rename between the look-up and the command moves no money to another wallet.
//!
//! Never in here: balances. Only postings and operations move them.

use holdfast_domain::admin::listing::{Page, PageRequest, WalletFilter};
use holdfast_domain::admin::{
    AccountAction, Reach, ResourceId, UseCase, WalletAction, WalletPatch, WalletRecord,
};
use holdfast_domain::{Currency, WalletId};
use uuid::Uuid;

use crate::{
    Accounts, AccountsError, Edit, Name, Outcome, Principal, Reference, Request, ResourceKind,
    Result,
};

/// A wallet to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWallet {
    /// Name for people; unique.
    pub name: Name,
    /// Currency, for ever.
    pub currency: Currency,
    /// Settings beside the name and the currency.
    pub settings: WalletPatch,
}

impl Accounts {
    /// Makes an empty wallet.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`]; no wallet was created, unless it is `Uncertain`.
    pub async fn create_wallet(
        &self,
        principal: &Principal,
        request: &Request,
        new: &NewWallet,
    ) -> Result<Outcome<WalletRecord>> {
        principal.authorize(UseCase::WalletCreate)?;
        let (id, name) = (WalletId::from(Uuid::now_v7()), new.name.as_str().to_owned());
        let record = WalletRecord::new(id, name, new.currency, new.settings.clone());
        let action = AccountAction::Wallet(WalletAction::Create(record.clone()));
        let done = self.change(principal, request, action).await?;
        // No row to read back: the rehearsal has created none.
        if request.dry_run {
            return Ok(Outcome { thing: record, replayed: done.replayed });
        }
        self.changed_wallet(&done.things, done.replayed).await
    }

    /// The wallet of this id or name.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one that is out of reach too.
    pub async fn wallet(
        &self,
        principal: &Principal,
        reference: &Reference,
    ) -> Result<WalletRecord> {
        principal.authorize(UseCase::WalletRead)?;
        self.reachable_wallet(principal, reference).await
    }

    /// Wallets, a page at a time.
    pub async fn wallets(
        &self,
        principal: &Principal,
        filter: WalletFilter,
        page: PageRequest,
    ) -> Result<Page<WalletRecord>> {
        principal.authorize(UseCase::WalletRead)?;
        match principal.reach {
            Reach::All => Ok(self.book.wallets(filter, page).await?),
            Reach::Wallet(own) => {
                // One row by its id, never the list with a filter: no page boundary can count
                // others' wallets.
                let own = self.book.wallet_record(own).await?;
                let rows = own.filter(|own| filter.admits(own));
                Ok(Page::whole(rows))
            }
        }
    }

    /// Edits a wallet.
    pub async fn edit_wallet(
        &self,
        principal: &Principal,
        request: &Request,
        reference: &Reference,
        edit: Edit<WalletPatch>,
    ) -> Result<Outcome<WalletRecord>> {
        principal.authorize(UseCase::WalletUpdate)?;
        let wallet = self.reachable_wallet(principal, reference).await?.wallet.id;
        let Edit { patch, expected } = edit;
        let action = AccountAction::Wallet(WalletAction::Edit { wallet, patch, expected });
        self.change_wallet(principal, request, action).await
    }

    /// Closes an empty wallet for good, and revokes its API keys with it.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`]; a wallet that is not empty is refused with what it has.
    pub async fn close_wallet(
        &self,
        principal: &Principal,
        request: &Request,
        reference: &Reference,
    ) -> Result<Outcome<WalletRecord>> {
        principal.authorize(UseCase::WalletClose)?;
        let wallet = self.reachable_wallet(principal, reference).await?.wallet.id;
        self.change_wallet(principal, request, AccountAction::Wallet(WalletAction::Close(wallet)))
            .await
    }

    async fn change_wallet(
        &self,
        principal: &Principal,
        request: &Request,
        action: AccountAction,
    ) -> Result<Outcome<WalletRecord>> {
        let done = self.change(principal, request, action).await?;
        self.changed_wallet(&done.things, done.replayed).await
    }

    async fn changed_wallet(
        &self,
        things: &[ResourceId],
        replayed: bool,
    ) -> Result<Outcome<WalletRecord>> {
        let id =
            |thing: &ResourceId| if let ResourceId::Wallet(id) = thing { Some(*id) } else { None };
        let id = things.iter().find_map(id).ok_or(AccountsError::NotFound(ResourceKind::Wallet))?;
        let record = self.book.wallet_record(id).await?;
        let thing = record.ok_or(AccountsError::NotFound(ResourceKind::Wallet))?;
        Ok(Outcome { thing, replayed })
    }

    /// The wallet of this id or name, if it is within reach.
    pub(crate) async fn reachable_wallet(
        &self,
        principal: &Principal,
        reference: &Reference,
    ) -> Result<WalletRecord> {
        let found = match reference {
            Reference::Id(id) => self.book.wallet_record(WalletId::from(*id)).await?,
            Reference::Name(name) => self.book.wallet_named(name.as_str()).await?,
        };
        let found = found.ok_or(AccountsError::NotFound(ResourceKind::Wallet))?;
        principal.reach(found.wallet.id, ResourceKind::Wallet)?;
        Ok(found)
    }
}
