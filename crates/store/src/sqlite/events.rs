//! Writes events of what was noticed beside the changes.

use holdfast_domain::event::NewEvent;
use holdfast_domain::ports::Unavailable;

use super::Sqlite;
use super::administration::execute;
use crate::dialect::Dialect;
use crate::{event, unavailable};

impl Sqlite {
    pub(crate) async fn tell(&self, noticed: Vec<NewEvent>) -> Result<(), Unavailable> {
        let told = self.write(move |transaction, now| {
            let mut each = noticed.iter().map(|it| event::insert(Dialect::Sqlite, it, now));
            each.try_for_each(|statement| execute(transaction, &statement))
        });
        told.await.map_err(unavailable)
    }
}
