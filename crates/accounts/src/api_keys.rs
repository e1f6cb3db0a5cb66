//! API keys: issued, found, listed, edited, suspended, rotated, revoked.
//!
//! ```text
//! role, reach ─▶ reason required? ─▶ secret made ─▶ command: request key, end, key_spend, names
//! ```
//!
//! A secret is money. It is shown once, to the principal that has the key issued or rotated, and only if this
//! very request created it: a repetition finds the key and no secret, and the key is rotated for another one.
//! The secret is made before the command, because only its verifier goes to the store.
//!
//! Never in here: a judgement that time or a setting changes, such as of an end or of the wallet's `key_spend`.
//! The command carries the flag that its actor is bound ([`is_bounded`]), and is judged after its request key
//! was found free, so that a late repetition is answered.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_lc_rs::rand;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyListing, Page, PageRequest};
use holdfast_domain::admin::{AccountAction, ApiKeyAction, ApiKeyPatch, ResourceId, Role, UseCase};
use holdfast_domain::credential::{ApiKey, Bearer, Credential, Grant};
use holdfast_domain::model::ModelPattern;
use holdfast_domain::ports::{CounterSnapshot, NewApiKey};
use holdfast_domain::secret::CredentialSecret;
use holdfast_domain::{ApiKeyId, CredentialId, Timestamp, WalletId};
use uuid::Uuid;

use crate::{
    Accounts, AccountsError, Edit, ExternalId, Name, Outcome, Principal, Reference, Request,
    ResourceKind, Result,
};

/// An API key to be issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOrder {
    /// Name for people; generated if it is missing.
    pub name: Option<Name>,
    /// Id in another system, such as your customers' database; unique within the wallet.
    pub external_id: Option<ExternalId>,
    /// Grant: all that it may do, and until when.
    pub grant: Grant,
}

/// An API key that was issued or rotated, with its bearer if this very request created it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedApiKey {
    /// The key.
    pub api_key: ApiKey,
    /// Text that its holder shows; `None` for a repetition, which cannot know it.
    pub bearer: Option<Bearer>,
    /// Moment at which the other credentials end at the latest; `None` for a new key.
    pub others_end_at: Option<Timestamp>,
}

/// An API key with the readings of its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// The key.
    pub api_key: ApiKey,
    /// Counters of the key in the current windows.
    pub counters: CounterSnapshot,
}

// All or none, in one transaction: while it runs, other changes wait for its locks. The command
// line cuts a longer file into requests of this size.
/// Most keys that one request issues.
const KEYS_MAX: usize = 100;

impl Accounts {
    /// Issues API keys of one wallet, all or none.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`]; no key was issued, unless it is `Uncertain`.
    pub async fn issue_api_keys(
        &self,
        principal: &Principal,
        request: &Request,
        wallet: &Reference,
        orders: &[KeyOrder],
    ) -> Result<Outcome<Vec<IssuedApiKey>>> {
        principal.authorize(UseCase::ApiKeyIssue)?;
        // The role first, then the wallet, and only then the body: a caller without the right
        // learns neither that the wallet exists nor how its keys are judged.
        let wallet = self.reachable_wallet(principal, wallet).await?;
        if orders.is_empty() || orders.len() > KEYS_MAX {
            return Err(AccountsError::Invalid {
                field: "keys",
                message: format!("a request issues 1 to {KEYS_MAX} keys"),
            });
        }
        Self::want_reason_of_operator(principal, UseCase::ApiKeyIssue, request)?;
        let models = orders.iter().filter_map(|order| order.grant.models.as_ref());
        self.refuse_unoffered(principal, request, models).await?;
        // Made before the command, although a repetition throws them away: the transaction must not
        // wait for randomness, and stores verifiers only.
        let mut made = Vec::with_capacity(orders.len());
        for order in orders {
            made.push(self.new_key(wallet.wallet.id, order)?);
        }
        let keys = made.iter().map(|(key, credential, _)| (key.clone(), credential.clone()));
        let action = AccountAction::ApiKey(ApiKeyAction::Issue {
            wallet: wallet.wallet.id,
            keys: keys.collect(),
            is_bounded: is_bounded(principal),
        });
        let done = self.change(principal, request, action).await?;
        let mut issued = Vec::with_capacity(done.things.len());
        for id in done.things.iter().filter_map(api_key_of) {
            let own = made.iter().find(|(key, ..)| key.id == id);
            let api_key = match (self.book.api_key(id).await?, own) {
                (Some(api_key), _) => api_key,
                // Judged, and not made.
                (None, Some((key, ..))) => key.clone().issued_at(done.at),
                (None, None) => return Err(AccountsError::NotFound(ResourceKind::ApiKey)),
            };
            // No secret of a key that is not there, or that another request made.
            let is_shown = !request.dry_run && !done.replayed;
            let bearer = own.filter(|_| is_shown).map(|(_, _, bearer)| bearer.clone());
            issued.push(IssuedApiKey { api_key, bearer, others_end_at: None });
        }
        Ok(Outcome { thing: issued, replayed: done.replayed })
    }

    /// API keys, a page at a time.
    pub async fn api_keys(
        &self,
        principal: &Principal,
        filter: ApiKeyFilter,
        page: PageRequest,
    ) -> Result<Page<ApiKeyListing>> {
        principal.authorize(UseCase::ApiKeyRead)?;
        let wallet = match (principal.only_wallet(), filter.wallet) {
            (Some(own), Some(requested)) if own != requested => {
                return Ok(Page::empty());
            }
            (own, requested) => own.or(requested),
        };
        Ok(self.book.api_keys(ApiKeyFilter { wallet, ..filter }, page).await?)
    }

    /// The API key of this id or name, with its counters.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one of a wallet that is out of reach too.
    pub async fn api_key(
        &self,
        principal: &Principal,
        reference: &Reference,
        wallet: Option<WalletId>,
    ) -> Result<ApiKeyRecord> {
        principal.authorize(UseCase::ApiKeyRead)?;
        let api_key = self.reachable_api_key(principal, reference, wallet).await?;
        let counters = self.book.counters(api_key.id).await?;
        Ok(ApiKeyRecord { api_key, counters })
    }

    /// Edits an API key.
    pub async fn edit_api_key(
        &self,
        principal: &Principal,
        request: &Request,
        reference: &Reference,
        edit: Edit<ApiKeyPatch>,
    ) -> Result<Outcome<ApiKey>> {
        let Edit { patch, expected } = edit;
        principal.authorize(UseCase::ApiKeyUpdate)?;
        let found = self.reachable_api_key(principal, reference, None).await?;
        let (api_key, wallet) = (found.id, found.wallet);
        // A list that is there stays: its models may have left the configuration since.
        let other = patch.models.iter().flatten();
        let other = other.filter(|models| found.grant.models.as_ref() != Some(*models));
        self.refuse_unoffered(principal, request, other).await?;
        let is_bounded = is_bounded(principal);
        let action = AccountAction::ApiKey(ApiKeyAction::Edit {
            api_key,
            wallet,
            patch,
            expected,
            is_bounded,
        });
        self.change_api_key(principal, request, found, action).await
    }

    /// Adds a credential to an API key, and ends its other ones after a grace.
    pub async fn rotate_api_key(
        &self,
        principal: &Principal,
        request: &Request,
        reference: &Reference,
        grace: Duration,
    ) -> Result<Outcome<IssuedApiKey>> {
        principal.authorize(UseCase::ApiKeyRotate)?;
        Self::want_reason_of_operator(principal, UseCase::ApiKeyRotate, request)?;
        let found = self.reachable_api_key(principal, reference, None).await?;
        let (credential, bearer) = self.credential(found.id)?;
        let (wallet, is_bounded) = (found.wallet, is_bounded(principal));
        let action =
            AccountAction::ApiKey(ApiKeyAction::Rotate { credential, wallet, grace, is_bounded });
        let done = self.change(principal, request, action).await?;
        let is_shown = !request.dry_run && !done.replayed;
        let thing = IssuedApiKey {
            api_key: self.book.api_key(found.id).await?.unwrap_or(found),
            bearer: Some(bearer).filter(|_| is_shown),
            others_end_at: Some(done.at.after(grace)),
        };
        Ok(Outcome { thing, replayed: done.replayed })
    }

    async fn change_api_key(
        &self,
        principal: &Principal,
        request: &Request,
        found: ApiKey,
        action: AccountAction,
    ) -> Result<Outcome<ApiKey>> {
        let done = self.change(principal, request, action).await?;
        let id = done.things.iter().find_map(api_key_of).unwrap_or(found.id);
        let thing = self.book.api_key(id).await?.unwrap_or(found);
        Ok(Outcome { thing, replayed: done.replayed })
    }

    /// The API key of this id or name, if it is within reach.
    pub(crate) async fn reachable_api_key(
        &self,
        principal: &Principal,
        reference: &Reference,
        wallet: Option<WalletId>,
    ) -> Result<ApiKey> {
        let missing = || AccountsError::NotFound(ResourceKind::ApiKey);
        let found = match reference {
            Reference::Id(id) => self.book.api_key(ApiKeyId::from(*id)).await?,
            Reference::Name(name) => {
                let wallet = wallet.or(principal.only_wallet());
                // Names are unique within a wallet only. The first of several would be another
                // customer's key, so an ambiguous name is an error and not a choice.
                let mut named = self.book.api_keys_named(name.as_str(), wallet).await?;
                if named.len() > 1 {
                    return Err(AccountsError::Ambiguous(ResourceKind::ApiKey));
                }
                named.pop()
            }
        };
        let found = found.ok_or_else(missing)?;
        principal.reach(found.wallet, ResourceKind::ApiKey)?;
        Ok(found)
    }

    /// Refuses an allow-list with a model that this process does not serve, unless the request key is bound: a
    /// change that was made is answered again, even if the configuration has changed since. A process that
    /// serves no models judges none.
    async fn refuse_unoffered<'a>(
        &self,
        principal: &Principal,
        request: &Request,
        lists: impl Iterator<Item = &'a BTreeSet<ModelPattern>> + Send,
    ) -> Result<()> {
        let Some(offers) = &self.offers else { return Ok(()) };
        let offered = offers.models().into_iter().map(|offer| offer.contract.model);
        // A set of all entries that would do: each entry is looked up once, however many models and keys there are.
        let offered = offered.flat_map(|model| [ModelPattern::of_publisher(&model), model.into()]);
        let offered: BTreeSet<_> = offered.collect();
        let Some(unknown) = lists.flatten().find(|entry| !offered.contains(*entry)) else {
            return Ok(());
        };
        // The request key is looked up only for a list that is about to be refused: the usual
        // change costs no statement more.
        let message = format!(
            "this list cannot be granted: there is no model {unknown} in the configuration; GET /admin/v1/models and `holdfast model list` list \
             the models"
        );
        if self.book.request_record(principal.actor, request.key).await?.is_some() {
            return Ok(());
        }
        Err(AccountsError::Invalid { field: "models", message })
    }

    fn new_key(
        &self,
        wallet: WalletId,
        order: &KeyOrder,
    ) -> Result<(NewApiKey, Credential, Bearer)> {
        let id = Uuid::new_v4();
        let made_up = || format!("key-{}", id.as_simple()).chars().take(12).collect();
        let key = NewApiKey {
            id: ApiKeyId::from(id),
            wallet,
            name: order.name.as_ref().map_or_else(made_up, |name| name.as_str().to_owned()),
            external_id: order.external_id.as_ref().map(|id| id.as_str().to_owned()),
            grant: order.grant.clone(),
        };
        let (credential, bearer) = self.credential(key.id)?;
        Ok((key, credential, bearer))
    }

    /// A new credential of an API key, and what its bearer has to keep.
    fn credential(&self, api_key: ApiKeyId) -> Result<(Credential, Bearer)> {
        let server_secret = self.writing_secret()?;
        let (id, secret) = self.random_credential()?;
        let bearer = Bearer { id, secret };
        let credential = Credential {
            id,
            api_key,
            verifier: server_secret.verifier(&bearer.secret),
            server_secret: server_secret.id(),
            ends_at: None,
        };
        Ok((credential, bearer))
    }

    /// Random halves of a credential. The id is random as well, but for its cell: a bearer must not reveal the number
    /// of keys.
    pub(crate) fn random_credential(&self) -> Result<(CredentialId, CredentialSecret)> {
        let (mut id, mut secret) = ([0; 16], [0; 32]);
        let filled = rand::fill(&mut id).and_then(|()| rand::fill(&mut secret));
        filled.map_err(|error| AccountsError::NoRandom(Box::new(error)))?;
        let id = CredentialId::from_bytes(id);
        Ok((self.cell.map_or(id, |cell| cell.place(id)), CredentialSecret::new(secret)))
    }

    /// An operator who acts on another's wallet gives a reason. Direct database access needs none.
    fn want_reason_of_operator(
        principal: &Principal,
        use_case: UseCase,
        request: &Request,
    ) -> Result<()> {
        // A holder's own key needs no reason. A change of another's key is shown to its holder in
        // the audit log, and has to explain itself there.
        let is_own = principal.role.is_holder() || *principal == Principal::local();
        if is_own { Ok(()) } else { Self::want_reason(use_case, request) }
    }
}

/// 256 random bits.
pub(crate) fn random_bits() -> Result<[u8; 32]> {
    let mut bits = [0; 32];
    rand::fill(&mut bits).map_err(|error| AccountsError::NoRandom(Box::new(error)))?;
    Ok(bits)
}

fn api_key_of(thing: &ResourceId) -> Option<ApiKeyId> {
    if let ResourceId::ApiKey(id) = thing { Some(*id) } else { None }
}

/// True for a principal that grants no more than the wallet's `key_spend`.
const fn is_bounded(principal: &Principal) -> bool {
    !matches!(principal.role, Role::Owner | Role::HolderAdmin)
}
