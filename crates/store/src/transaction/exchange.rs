//! Transactions that are written once for both databases: a statement that reads, and those that follow
//! from its rows. Each database's own part only sends them.

use holdfast_domain::Timestamp;
use holdfast_domain::ports::{AdditionError, Cause, Unavailable};
use sea_orm::Statement;

use crate::rows::{BadRow, Cells};
use crate::transaction::command::Tx;

/// A transaction: at most one statement that reads, and those that follow from its rows.
pub(crate) struct Exchange<R, T> {
    /// Lock that is taken before the read, so that it sees the rows of the last owner of the lock.
    lock: Option<Statement>,
    pub(crate) read: Option<ReadAt>,
    row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    judge: Judge<R, T>,
}

/// Statement of a moment.
type ReadAt = Box<dyn FnOnce(Timestamp) -> Statement + Send>;
/// Judgement of the rows of an exchange at a moment.
type Judge<R, T> = Box<dyn FnOnce(Vec<R>, Timestamp) -> (Vec<Statement>, T) + Send>;

/// Failure of an exchange: no row was written, unless it is of COMMIT.
pub(crate) struct ExchangeError {
    /// True if a row was refused because another one has its name or id.
    pub(crate) is_taken: bool,
    /// True if the database refused a row, or has one that cannot be understood: the same exchange fails each time.
    pub(crate) is_misfit: bool,
    pub(crate) cause: Cause,
}

impl From<ExchangeError> for Unavailable {
    fn from(error: ExchangeError) -> Self {
        Self(error.cause)
    }
}

impl From<ExchangeError> for AdditionError {
    fn from(ExchangeError { is_taken: _, is_misfit, cause }: ExchangeError) -> Self {
        if is_misfit { Self::Misfit(cause) } else { Self::Unavailable(Unavailable(cause)) }
    }
}

impl<R, T> Exchange<R, T> {
    pub(crate) fn new(
        read: impl FnOnce(Timestamp) -> Statement + Send + 'static,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
        judge: impl FnOnce(Vec<R>, Timestamp) -> (Vec<Statement>, T) + Send + 'static,
    ) -> Self {
        Self { lock: None, read: Some(Box::new(read)), row, judge: Box::new(judge) }
    }

    /// Takes a lock first, if the database needs one.
    pub(crate) fn locked(self, lock: Option<Statement>) -> Self {
        Self { lock, ..self }
    }

    pub(crate) async fn run<X: Tx>(self, tx: &mut X, now: Timestamp) -> Result<T, X::Error> {
        // Before the read, which has to see what the holder before this one wrote.
        if let Some(lock) = self.lock {
            tx.execute(lock).await?;
        }
        let found = match self.read {
            Some(read) => tx.query(read(now), self.row).await?,
            None => Vec::new(),
        };
        let (statements, value) = (self.judge)(found, now);
        for statement in statements {
            tx.execute(statement).await?;
        }
        Ok(value)
    }
}

impl Exchange<(), ()> {
    /// The statements of a moment, and none that reads.
    pub(crate) fn of(
        statements: impl FnOnce(Timestamp) -> Vec<Statement> + Send + 'static,
    ) -> Self {
        let judge = move |_rows: Vec<()>, now| (statements(now), ());
        Self { lock: None, read: None, row: |_cells| Ok(()), judge: Box::new(judge) }
    }
}
