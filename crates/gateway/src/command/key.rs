//! `holdfast key`

use anyhow::{Context, anyhow};
use holdfast_domain::credential::{ApiKey, Bearer, Credential};
use holdfast_domain::limits::Limits;
use holdfast_domain::ports::{CreateError, NewApiKey};
use holdfast_domain::secret::{CredentialSecret, ServerSecret};
use holdfast_domain::{ApiKeyId, CredentialId, Keys, WalletId};
use holdfast_store::Store;
use holdfast_wire::api::{ApiKeyView, IssuedKeyView, rfc3339};
use uuid::Uuid;

use super::wallet;
use crate::cli;
use crate::cli::value::Reference;
use crate::config::Config;
use crate::database;
use crate::failure::Failure;
use crate::output::{Output, note};

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::Key,
) -> Result<(), Failure> {
    match command {
        cli::Key::Issue { wallet, name } => {
            let wallet = wallet::find(store, &wallet).await?;
            let secrets = database::secrets(config, store).await?;
            let name = name.as_ref().map(cli::value::Name::as_str);
            let (key, bearer) = issue(store, secrets.first(), wallet.id, name).await?;
            let fields = [
                ("id", key.id.to_string()),
                ("name", key.name.clone()),
                ("wallet", wallet.name),
                ("key", bearer.expose()),
            ];
            output.object(&IssuedKeyView::of(&key, &bearer), &fields)?;
            note("keep the key now: it is not stored and is not shown again");
            Ok(())
        }
        cli::Key::List => {
            let keys = Keys::list(store).await.context("API keys were not listed")?;
            let views: Vec<_> = keys.iter().map(ApiKeyView::of).collect();
            let rows: Vec<_> = keys.iter().map(|key| fields(key).map(|(_, value)| value)).collect();
            output.list(&views, ["id", "name", "wallet_id", "created_at", "revoked_at"], &rows)
        }
        cli::Key::Revoke { key } => {
            let key = find(store, &key).await?;
            let revoked_at = store.revoke(key.id).await.context("the API key was not revoked")?;
            let again = key.revoked_at.is_some();
            let key = ApiKey { revoked_at, ..key };
            output.object(&ApiKeyView::of(&key), &fields(&key))?;
            if again {
                note("it had been revoked before");
            }
            Ok(())
        }
    }
}

/// Issues an API key with its first credential. The bearer is all that ever knows its secret.
pub(crate) async fn issue(
    store: &Store,
    server_secret: &ServerSecret,
    wallet: WalletId,
    name: Option<&str>,
) -> anyhow::Result<(ApiKey, Bearer)> {
    let (mut id, mut secret) = ([0; 16], [0; 32]);
    let random = aws_lc_rs::rand::fill(&mut id).and_then(|()| aws_lc_rs::rand::fill(&mut secret));
    random.context("the system gives no random bytes")?;
    let bearer = Bearer { id: CredentialId::from_bytes(id), secret: CredentialSecret::new(secret) };
    let api_key = Uuid::new_v4();
    let made_up = || format!("key-{}", api_key.as_simple()).chars().take(12).collect();
    let key = NewApiKey {
        id: ApiKeyId::from(api_key),
        wallet,
        name: name.map_or_else(made_up, str::to_owned),
        limits: Limits::default(),
    };
    let credential = Credential {
        id: bearer.id,
        api_key: key.id,
        verifier: server_secret.verifier(&bearer.secret),
        server_secret: server_secret.id(),
        ends_at: None,
    };
    match store.issue(&key, &credential).await {
        Ok(key) => Ok((key, bearer)),
        Err(CreateError::NameTaken) => {
            Err(anyhow!("there is an API key named {} already", key.name))
        }
        Err(error @ (CreateError::NoWallet | CreateError::Unavailable(_))) => {
            Err(anyhow::Error::from(error).context("the API key was not issued"))
        }
    }
}

/// The API key of this id or name.
pub(super) async fn find(store: &Store, reference: &Reference) -> anyhow::Result<ApiKey> {
    let keys = Keys::list(store).await.context("the API key was not looked up")?;
    let found = keys.into_iter().find(|key| match reference {
        Reference::Id(id) => key.id == ApiKeyId::from(*id),
        Reference::Name(name) => key.name == name.as_str(),
    });
    found.ok_or_else(|| anyhow!("there is no API key {reference}: `holdfast key list` shows all"))
}

fn fields(key: &ApiKey) -> [(&'static str, String); 5] {
    [
        ("id", key.id.to_string()),
        ("name", key.name.clone()),
        ("wallet_id", key.wallet.to_string()),
        ("created_at", rfc3339(key.created_at)),
        ("revoked_at", key.revoked_at.map_or_else(|| "-".to_owned(), rfc3339)),
    ]
}
