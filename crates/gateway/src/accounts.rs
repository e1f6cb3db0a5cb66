//! Wallets, API keys and postings, as they are made: for the commands of an operator, and for the
//! first start of the embedded default. Nothing is printed here, and nothing is asked.

pub(crate) mod posting;

use anyhow::{Context, anyhow};
use holdfast_domain::credential::{ApiKey, Bearer, Credential, Grant};
use holdfast_domain::ports::{CreateError, NewApiKey};
use holdfast_domain::secret::{CredentialSecret, ServerSecret};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, ApiKeys, CredentialId, Currency, WalletId, Wallets};
use holdfast_store::Store;
use uuid::Uuid;

/// Creates an empty wallet.
pub(crate) async fn create_wallet(
    store: &Store,
    name: &str,
    currency: Currency,
) -> anyhow::Result<Wallet> {
    let id = WalletId::from(Uuid::now_v7());
    match Wallets::create(store, id, name, currency).await {
        Ok(wallet) => Ok(wallet),
        Err(CreateError::NameTaken) => Err(anyhow!("there is a wallet named {name} already")),
        Err(error @ (CreateError::NoWallet | CreateError::Unavailable(_))) => {
            Err(anyhow::Error::from(error).context("the wallet was not created"))
        }
    }
}

/// Issues an API key with its first credential. The bearer is all that ever knows its secret.
pub(crate) async fn issue_key(
    store: &Store,
    server_secret: &ServerSecret,
    wallet: WalletId,
    name: Option<&str>,
    grant: Grant,
) -> anyhow::Result<(ApiKey, Bearer)> {
    let api_key = Uuid::new_v4();
    let made_up = || format!("key-{}", api_key.as_simple()).chars().take(12).collect();
    let key = NewApiKey {
        id: ApiKeyId::from(api_key),
        wallet,
        name: name.map_or_else(made_up, str::to_owned),
        grant,
    };
    let (credential, bearer) = credential(server_secret, key.id)?;
    match store.issue(&key, &credential).await {
        Ok(key) => Ok((key, bearer)),
        // A revoked key is not in the way of anybody's work, but its name is: say which of the two
        // it is.
        Err(CreateError::NameTaken) => {
            let name = &key.name;
            let other = store.api_key_named(name).await?;
            let revoked = other.is_some_and(|other| other.revoked_at.is_some());
            let why = if revoked { ": it is revoked, and keeps its name in the book" } else { "" };
            Err(anyhow!("there is an API key named {name} already{why}; choose another name"))
        }
        Err(error @ (CreateError::NoWallet | CreateError::Unavailable(_))) => {
            Err(anyhow::Error::from(error).context("the API key was not issued"))
        }
    }
}

/// A new credential of an API key, and what its bearer has to keep.
pub(crate) fn credential(
    server_secret: &ServerSecret,
    api_key: ApiKeyId,
) -> anyhow::Result<(Credential, Bearer)> {
    let (mut id, mut secret) = ([0; 16], [0; 32]);
    // The id is random as well: a bearer must not tell how many there are.
    let random = aws_lc_rs::rand::fill(&mut id).and_then(|()| aws_lc_rs::rand::fill(&mut secret));
    random.context("the system gives no random bytes")?;
    let bearer = Bearer { id: CredentialId::from_bytes(id), secret: CredentialSecret::new(secret) };
    let credential = Credential {
        id: bearer.id,
        api_key,
        verifier: server_secret.verifier(&bearer.secret),
        server_secret: server_secret.id(),
        ends_at: None,
    };
    Ok((credential, bearer))
}
