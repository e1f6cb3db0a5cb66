//! Wallets, API keys and deposits: commands of administration, each under a request key of the caller.
//!
//! A request key is for ever: the command again is answered with what it made first, after a restart too.

use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountReceipt, ActorId, Administration as _, ApiKeyAction,
    NewPosting, PostingDetails, RequestBinding, ResourceId, TrailFields as _, WalletAction,
    WalletBounds, WalletPatch, WalletRecord,
};
use holdfast_domain::credential::{Bearer, Credential, Grant, NewApiKey};
use holdfast_domain::ledger::{BadPosting, Posting, PostingKind};
use holdfast_domain::secret::CredentialSecret;
use holdfast_domain::text::{BadName, name as name_of, normal_form};
use holdfast_domain::{ApiKeyId, CommandKey, Currency, Micros, PostingId, Timestamp, WalletId};
use uuid::Uuid;

use crate::Holdfast;

/// An API key, as its command made it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IssuedKey {
    /// The key: the scope of request keys.
    pub id: ApiKeyId,
    /// First credential of the key; `None` if an earlier command made the key, because no secret is kept.
    pub bearer: Option<Bearer>,
}

/// Reason why a command was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// The name is none of a wallet or an API key.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The amount is none of a deposit.
    #[error(transparent)]
    Amount(#[from] BadPosting),
    /// The command was refused, or the store does not work.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl Holdfast {
    /// Makes an empty wallet, once for this request key.
    ///
    /// # Errors
    ///
    /// [`AccountError::Name`] for a name that cannot be shown or is taken for an id, and
    /// [`AccountError::Command`] if the command is refused, or the store does not work.
    pub async fn create_wallet(
        &self,
        key: CommandKey,
        name: &str,
        currency: Currency,
    ) -> Result<WalletId, AccountError> {
        let id = WalletId::from(Uuid::new_v4());
        let settings = WalletPatch::default();
        let record = WalletRecord::new(id, self.name(key, name).await?, currency, settings);
        let command = format!("wallet {currency} {name}");
        let made = self
            .administer(key, &command, AccountAction::Wallet(WalletAction::Create(record)))
            .await?;
        // Another one if an earlier command made it.
        let [ResourceId::Wallet(made)] = made.things.as_slice() else {
            return Err(no_receipt().into());
        };
        Ok(*made)
    }

    /// Issues an API key of a wallet, once for this request key.
    ///
    /// # Errors
    ///
    /// As [`Self::create_wallet`].
    pub async fn issue_key(
        &self,
        key: CommandKey,
        wallet: WalletId,
        name: &str,
        grant: Grant,
    ) -> Result<IssuedKey, AccountError> {
        let id = ApiKeyId::from(Uuid::new_v4());
        let mut bits = [0; 32];
        // Two identifiers, of which six bits each are fixed: 244 random bits.
        let halves = [Uuid::new_v4(), Uuid::new_v4()].into_iter().flat_map(Uuid::into_bytes);
        bits.iter_mut().zip(halves).for_each(|(bit, random)| *bit = random);
        let bearer = Bearer { id: Uuid::new_v4().into(), secret: CredentialSecret::new(bits) };
        let secret = &self.inner.secret;
        let credential = Credential {
            id: bearer.id,
            api_key: id,
            verifier: secret.verifier(&bearer.secret),
            server_secret: secret.id(),
            ends_at: None,
        };
        let name = self.name(key, name).await?;
        let new = NewApiKey { id, wallet, name, external_id: None, grant };
        let command = command_of_key(&new);
        let keys = vec![(new, credential)];
        let issue = AccountAction::ApiKey(ApiKeyAction::Issue { wallet, keys, is_bounded: false });
        let made = self.administer(key, &command, issue).await?;
        let [ResourceId::ApiKey(id)] = *made.things.as_slice() else {
            return Err(no_receipt().into());
        };
        Ok(IssuedKey { id, bearer: (!made.replayed).then_some(bearer) })
    }

    /// Deposits money, once for this request key, which is the id of the posting.
    ///
    /// # Errors
    ///
    /// [`AccountError::Amount`] for an amount that is not above zero, and
    /// [`AccountError::Command`] if the command is refused, or the store does not work.
    pub async fn deposit(
        &self,
        key: CommandKey,
        wallet: WalletId,
        amount: Micros,
    ) -> Result<(), AccountError> {
        let id = PostingId::from_bytes(key.to_bytes());
        let posting = Posting::new(id, wallet, PostingKind::Deposit, amount)?;
        let details = PostingDetails::default();
        let new = NewPosting { posting, details, allowance: None, currency: None };
        let command = format!("deposit {wallet} {}", amount.get());
        self.administer(key, &command, AccountAction::Post(new)).await?;
        Ok(())
    }

    /// Name of a new resource. A bound request key is answered with its recorded result, even if the name
    /// differs.
    async fn name(&self, key: CommandKey, text: &str) -> Result<String, AccountError> {
        let bad = match name_of(text.trim()) {
            Ok(name) => return Ok(name),
            Err(bad) => bad,
        };
        // Only for a bad name: a rule for names that became stricter must not refuse the repetition
        // of a command that was done.
        let bound = self.store().request_record(ActorId::Local, key).await;
        match bound.map_err(|error| CommandError::Unavailable(Box::new(error)))? {
            Some(_bound) => Ok(normal_form(text.trim()).into_owned()),
            None => Err(bad.into()),
        }
    }

    /// Runs a command of the actor `local`, bound to the text of the request.
    async fn administer(
        &self,
        key: CommandKey,
        command: &str,
        action: AccountAction,
    ) -> Result<AccountReceipt, CommandError> {
        let secret = &self.inner.secret;
        // Under a key of its own: no API key is zero.
        let digest = secret.body_digest_key(ApiKeyId::from_u128(0)).digest(command.as_bytes());
        let request = RequestBinding { key, digest: digest.to_bytes(), canonical: None };
        let command = AccountCommand {
            is_after_restore: self.is_after_restore,
            actor: ActorId::Local,
            address: None,
            request,
            reason: None,
            bounds: WalletBounds::DEFAULT,
            action,
        };
        self.store().administer(&command, secret).await
    }
}

/// A receipt of another kind than its command's: a fault of the store.
fn no_receipt() -> CommandError {
    CommandError::Unavailable("the receipt names no resource of the command".into())
}

/// Text that an issue is bound to: the fields that the audit log has of the key, each with its length. A version with
/// more of them writes the same text for a key that has none of the new ones.
fn command_of_key(new: &NewApiKey) -> String {
    let key = new.clone().issued_at(Timestamp::from_micros(0));
    key.trail_fields().into_iter().fold("api key".to_owned(), |mut text, (field, value)| {
        if let Some(value) = value {
            text.push_str(&format!(" {field} {} {value}", value.len()));
        }
        text
    })
}
