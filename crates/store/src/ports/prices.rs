//! Price versions, kept for ever.

use async_trait::async_trait;
use holdfast_domain::Prices;
use holdfast_domain::ports::PinError;
use holdfast_domain::price::PriceVersion;

use crate::{Store, WriteBackend};

#[async_trait]
impl Prices for Store {
    async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.pin(versions).await,
            WriteBackend::Postgres(postgres) => postgres.pin(versions).await,
        }
    }
}
