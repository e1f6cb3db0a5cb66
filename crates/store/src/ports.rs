//! The storage ports on a [`Store`](crate::Store): what is read is read here, by statements that both databases
//! understand; what is written is handed to the database's own writer.

mod administration;
mod events;
mod jobs;
mod journal;
mod keys;
mod nodes;
mod prices;
mod sessions;
mod wallets;
mod webhooks;

pub(crate) use self::journal::JournalStatements;
#[cfg(test)]
pub(crate) use self::keys::STANDING;
