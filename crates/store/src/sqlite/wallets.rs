//! Writes wallets. Balances are moved by the writer's batches alone.

use holdfast_domain::ports::CreateError;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Micros, WalletId};

use super::Sqlite;

const CREATE: &str = "INSERT INTO wallets (id, name, currency, available, held, created_at)
    VALUES (?1, ?2, ?3, 0, 0, ?4)";

impl Sqlite {
    pub(crate) async fn create_wallet(
        &self,
        id: WalletId,
        name: &str,
        currency: Currency,
    ) -> Result<Wallet, CreateError> {
        let name = name.to_owned();
        let created = self.write(move |transaction, now| {
            let row = (id.to_bytes(), name.as_str(), currency.as_str(), now.as_micros());
            transaction.execute(CREATE, row)?;
            let zero = Micros::ZERO;
            Ok(Wallet { id, name, currency, available: zero, held: zero, suspended_at: None })
        });
        created.await.map_err(|error| {
            // By the table, as on a server: the name is taken or not as the row is written.
            if error.is_taken() {
                CreateError::NameTaken
            } else {
                CreateError::Unavailable(Box::new(error))
            }
        })
    }
}
