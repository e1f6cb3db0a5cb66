//! The use cases of administration, for the command line beside the database: as the actor `local`,
//! who may do everything, and in the words of that command line.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use async_trait::async_trait;
use holdfast_accounts::{Accounts, AccountsError, Principal, Reason, Reference, Request};
use holdfast_config::Config;
use holdfast_domain::account::{AccountRefusal, WalletRecord};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::ports::Pause;
use holdfast_domain::{CommandKey, Currency};
use holdfast_engine::Secrets;
use holdfast_store::Store;
use uuid::Uuid;

use crate::database;
use crate::failure::CommandFailure;
use crate::output::note;

const BETWEEN_OFFERS: Duration = Duration::from_millis(200);

/// The wait between two offers to a store that gave no verdict.
#[derive(Debug)]
pub(crate) struct FixedPause;

#[async_trait]
impl Pause for FixedPause {
    async fn pause(&self, _attempt: u32) {
        tokio::time::sleep(BETWEEN_OFFERS).await;
    }
}

/// The use cases over a store, with the secrets that it is served with.
pub(crate) fn over(store: &Store, secrets: &Secrets) -> Accounts {
    Accounts::new(Arc::new(store.clone()), secrets.all(), Arc::new(FixedPause))
}

/// The use cases for whoever has the database.
#[derive(Debug)]
pub(crate) struct LocalAccounts {
    pub(crate) accounts: Accounts,
    pub(crate) principal: Principal,
}

impl LocalAccounts {
    /// Reads the secrets, which are made where there are none yet. For whatever makes a secret for
    /// somebody: one that fits no credential in force is refused.
    pub(crate) async fn open(config: &Config, store: &Store) -> anyhow::Result<Self> {
        let secrets = database::secrets(config, store, note).await?;
        Ok(Self { accounts: over(store, &secrets), principal: Principal::local() })
    }

    /// For all other changes, which need a secret for the trail alone: a key whose secret was lost
    /// must still be ended.
    pub(crate) async fn to_change(config: &Config, store: &Store) -> anyhow::Result<Self> {
        let known = database::known_secrets(config);
        if known.is_empty() {
            return Self::open(config, store).await;
        }
        let accounts = Accounts::new(Arc::new(store.clone()), known, Arc::new(FixedPause));
        Ok(Self { accounts, principal: Principal::local() })
    }

    /// For reads alone, which need no secret.
    pub(crate) fn to_read(store: &Store) -> Self {
        let none: [_; 0] = [];
        let accounts = Accounts::new(Arc::new(store.clone()), none, Arc::new(FixedPause));
        Self { accounts, principal: Principal::local() }
    }
}

/// A request under the key of `--key`, or one made here. A made one is printed before it is sent, so
/// that an operator who loses the answer can repeat the command.
pub(crate) fn request(key: Option<Uuid>, words: &[&str], reason: Option<&Reason>) -> Request {
    let id = CommandKey::from(key.unwrap_or_else(Uuid::new_v4));
    if key.is_none() {
        note(&format!("key {id}"));
    }
    let parts: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    Request::new(id, &parts, reason.cloned())
}

/// The failure of a command: what was not done, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undone<'a> {
    /// Sentence such as `nothing was deposited`.
    pub(crate) nothing: &'a str,
    /// Key that makes a repetition safe.
    pub(crate) key: CommandKey,
    /// Currency of the amounts in a refusal.
    pub(crate) currency: Option<Currency>,
}

impl Undone<'_> {
    /// Says why in a sentence that tells what to do.
    pub(crate) fn because(self, error: AccountsError) -> CommandFailure {
        let Undone { nothing, key, .. } = self;
        match error {
            AccountsError::Refused(refusal) => self.refused(&refusal).into(),
            AccountsError::Uncertain(_) => anyhow!(
                "the store gave no verdict: run this again with `--key {key}`, it is done at most once"
            )
            .into(),
            AccountsError::Invalid { message, .. } => {
                CommandFailure::Usage(anyhow!("{nothing}: {message}"))
            }
            error @ (AccountsError::Forbidden { .. }
            | AccountsError::Unset(_)
            | AccountsError::NotFound(_)
            | AccountsError::Ambiguous(_)
            | AccountsError::NoSecret
            | AccountsError::NoRandom(_)
            | AccountsError::Unavailable(_)) => {
                anyhow::Error::from(error).context(nothing.to_owned()).into()
            }
        }
    }

    fn refused(self, refusal: &AccountRefusal) -> anyhow::Error {
        use AccountRefusal as Refusal;
        let Undone { nothing, key, currency } = self;
        let unit = currency.map_or_else(String::new, |currency| format!(" {currency}"));
        match refusal {
            Refusal::RequestKeyConflict => {
                anyhow!("{nothing}: {key} belongs to another command, use another --key")
            }
            Refusal::PostingConflict(known) => {
                let Posting { amount, wallet, kind, .. } = known;
                let known = match kind {
                    PostingKind::Deposit => format!("a deposit of {amount} to wallet {wallet}"),
                    PostingKind::Refund(operation) => {
                        format!("a refund of {amount} for operation {operation}")
                    }
                    PostingKind::Adjustment(reason) => {
                        format!("an adjustment of {amount} to wallet {wallet} ({reason})")
                    }
                };
                anyhow!("{nothing}: {key} is {known} already, use another --key")
            }
            Refusal::ExternalReferenceConflict(known) => anyhow!(
                "{nothing}: the reference belongs to the deposit {known}, which says something else"
            ),
            Refusal::NameTaken(name) => {
                anyhow!("{nothing}: there is one named {name} already; choose another name")
            }
            Refusal::ExternalIdTaken(id) => {
                anyhow!("{nothing}: there is one with the external id {id} already")
            }
            Refusal::InsufficientFunds { available } => {
                anyhow!("{nothing}: the wallet has {available}{unit} available")
            }
            Refusal::RefundTooLarge { charge, left } => {
                anyhow!("{nothing}: {left}{unit} is left of the charge of {charge}{unit}")
            }
            Refusal::WalletNotEmpty { available, held } => anyhow!(
                "{nothing}: the wallet has {available}{unit} available and {held}{unit} held; pay it out \
                 with `holdfast wallet adjust`, and let what runs finish"
            ),
            Refusal::NoWallet
            | Refusal::NoApiKey
            | Refusal::NoOperation
            | Refusal::NoAdminKey
            | Refusal::EditConflict { .. }
            | Refusal::WalletClosed
            | Refusal::WalletFull
            | Refusal::NothingCharged
            | Refusal::ApiKeyRevoked
            | Refusal::ApiKeyEnded
            | Refusal::AdminKeyEnded
            | Refusal::LastOwner => anyhow!("{nothing}: {refusal}"),
        }
    }
}

/// The wallet of this id or name, for what reads the store itself.
pub(crate) async fn find_wallet(
    store: &Store,
    reference: &Reference,
) -> anyhow::Result<WalletRecord> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_read(store);
    match accounts.wallet(&principal, reference).await {
        Ok(found) => Ok(found),
        Err(AccountsError::NotFound(_)) => {
            Err(anyhow!("there is no wallet {reference}: `holdfast wallet list` shows all"))
        }
        Err(error) => Err(anyhow::Error::from(error).context("the wallet was not looked up")),
    }
}
