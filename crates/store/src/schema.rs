//! Names and tables of a database: its address, its dialect, and the text of each migration.
//!
//! Pure: [`crate::migrate`] applies the migrations. Never in here: a connection.

/// The value for the database that there is, of those that are compiled in: the arm of SQLite, then that of
/// PostgreSQL. It is the one `match` over databases that depends on the features.
///
/// ```text
/// by_database!(self; Self::Sqlite(it) => it.seen(now); Self::Postgres(_) => now)
/// ```
///
/// becomes
///
/// ```text
/// match self {
///     #[cfg(feature = "sqlite")]
///     Self::Sqlite(it) => it.seen(now),
///     #[cfg(feature = "postgres")]
///     Self::Postgres(_) => now,
/// }
/// ```
macro_rules! by_database {
    ($of:expr; $sqlite:pat => $file:expr; $postgres:pat => $server:expr) => {
        match $of {
            #[cfg(feature = "sqlite")]
            $sqlite => $file,
            #[cfg(feature = "postgres")]
            $postgres => $server,
            // Without a database the crate has one error, that of its root.
            #[cfg(not(any(feature = "sqlite", feature = "postgres")))]
            _none => loop {},
        }
    };
}

pub(crate) mod dialect;
#[cfg(test)]
mod frozen;
pub(crate) mod loss;
pub(crate) mod steps;
pub(crate) mod url;

pub(crate) use self::dialect::{Dialect, blob};
pub(crate) use by_database;
