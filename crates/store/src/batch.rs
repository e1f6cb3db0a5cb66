//! Changes of operations on their way to a writer: the queue's jobs, and the judgement of a batch. Both databases
//! share it. Never in here: a statement, or a connection.

pub(crate) mod job;
#[doc(hidden)]
pub mod judge;
