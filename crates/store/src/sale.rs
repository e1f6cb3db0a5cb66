//! Ports of a sale on a [`Store`](crate::Store): what is read is read here, by statements that both databases
//! understand; what is written is handed to the database's own writer.

pub(crate) mod journal;
pub(crate) mod keys;
mod nodes;
mod prices;
mod restores;
mod routes;
mod statistics;
mod wallets;
