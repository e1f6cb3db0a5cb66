//! Transactions other than the batches of changes, each written once for both databases: statements, readers of
//! their rows, and the decisions from those. A database's own part sends them.
//!
//! | module | transaction |
//! |---|---|
//! | [`command`] | a command of administration, with its entry of the audit log |
//! | [`exchange`] | at most one statement that reads, and those that follow from its rows |
//! | [`event`] | events, written with their change |
//! | [`outbox`] | deliveries of events: their leases, and their ends |
//! | [`hour`] | a step of the summing of usage |

pub(crate) mod command;
pub(crate) mod event;
pub(crate) mod exchange;
pub(crate) mod hour;
pub(crate) mod outbox;
