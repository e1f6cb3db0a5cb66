//! Names and tables of a database: its address, its dialect, and the text of each migration.
//!
//! Pure: [`crate::migrate`] applies the migrations. Never in here: a connection.

pub(crate) mod dialect;
#[cfg(test)]
mod frozen;
pub(crate) mod loss;
pub(crate) mod steps;
pub(crate) mod url;

pub(crate) use self::dialect::{Dialect, blob};
