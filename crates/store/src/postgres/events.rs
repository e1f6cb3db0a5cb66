//! Writes events of what was noticed beside the changes.

use holdfast_domain::event::NewEvent;
use holdfast_domain::ports::Unavailable;

use super::Postgres;
use super::administration::execute;
use crate::dialect::Dialect;
use crate::{event, unavailable};

impl Postgres {
    pub(crate) async fn tell(&self, noticed: Vec<NewEvent>) -> Result<(), Unavailable> {
        let told = self.errands.write(move |connection, now| {
            Box::pin(async move {
                for it in noticed {
                    execute(connection, event::insert(Dialect::Postgres, &it, now)).await?;
                }
                Ok(())
            })
        });
        told.await.map_err(unavailable)
    }
}
