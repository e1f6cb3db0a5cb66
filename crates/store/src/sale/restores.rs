//! Restores: the declaration that an older copy is served, and its window.

use async_trait::async_trait;
use holdfast_domain::Restores;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::restore::{Restore, UnknownKeys};

use crate::error::unavailable;
use crate::rows::restore::{self, LAST, NEWEST};
use crate::rows::{BadRow, Cells};
use crate::schema::Dialect;
use crate::store::Store;
use crate::transaction::command::reads;
use crate::transaction::exchange::Exchange;

#[async_trait]
impl Restores for Store {
    async fn declare(&self, unknown: UnknownKeys) -> Result<Restore, Unavailable> {
        let dialect = self.dialect();
        let lock = match dialect {
            // A transaction that writes has the whole file.
            Dialect::Sqlite => None,
            // No command of administration is judged between the lock and COMMIT.
            Dialect::Postgres => Some(reads::head(dialect)),
        };
        let declaration = Exchange::of(move |now| restore::declaration(dialect, unknown, now));
        self.exchange(declaration.locked(lock)).await?;
        let rows = self.query(NEWEST, []).await?;
        let newest = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        restore::restore(&mut Cells::new(newest)).map_err(unavailable)
    }

    async fn open_window(&self) -> Result<Option<Restore>, Unavailable> {
        let sql = format!("SELECT {}, r.* FROM ({LAST}) AS r", self.dialect().clock());
        let rows = self.quick_query(&sql, []).await?;
        let read = |row| {
            let mut cells = Cells::new(row);
            Ok((cells.timestamp()?, restore::restore(&mut cells)?))
        };
        let last = rows.first().map(read).transpose().map_err(|bad: BadRow| unavailable(bad))?;
        // By the clock as reads see it, which is not behind the last write.
        let open = last.filter(|(now, restore)| restore.unknown_until > self.seen(*now));
        Ok(open.map(|(_now, restore)| restore))
    }
}
