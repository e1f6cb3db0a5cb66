//! Writes wallets. Balances are moved by the writer's batches alone.

use holdfast_domain::ports::CreateError;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Micros, WalletId};

use super::Postgres;
use super::error::is_taken;

const CREATE: &str = "INSERT INTO wallets (id, name, currency, available, held, created_at)
    VALUES ($1, $2, $3, 0, 0, $4)";

impl Postgres {
    pub(crate) async fn create_wallet(
        &self,
        id: WalletId,
        name: &str,
        currency: Currency,
    ) -> Result<Wallet, CreateError> {
        let name = name.to_owned();
        let created = self.errands.write(move |connection, now| {
            Box::pin(async move {
                sqlx::query(CREATE)
                    .bind(id.to_bytes().to_vec())
                    .bind(&name)
                    .bind(currency.as_str())
                    .bind(now.as_micros())
                    .execute(connection)
                    .await?;
                let zero = Micros::ZERO;
                Ok(Wallet { id, name, currency, available: zero, held: zero, suspended_at: None })
            })
        });
        created.await.map_err(|error| {
            // By the table: of two that take one name at once, a look before would let both pass.
            if is_taken(&error) {
                CreateError::NameTaken
            } else {
                CreateError::Unavailable(Box::new(error))
            }
        })
    }
}
