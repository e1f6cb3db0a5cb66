//! Price versions, kept for ever.

use async_trait::async_trait;
use holdfast_domain::Prices;
use holdfast_domain::ports::PinError;
use holdfast_domain::price::PriceVersion;

use crate::{Store, Writing};

#[async_trait]
impl Prices for Store {
    async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        match self.writing() {
            Writing::Sqlite(sqlite) => sqlite.pin(versions).await,
            Writing::Postgres(postgres) => postgres.pin(versions).await,
        }
    }
}
