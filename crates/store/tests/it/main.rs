//! The store on real SQLite files and a real PostgreSQL server: the laws of every store, and what only
//! these two promise.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that fails panics")]

mod administration;
mod allowance;
mod begins;
mod bounds;
mod commit;
mod constraints;
mod differential;
mod ended;
mod entry_order;
mod events;
mod filled;
mod heat;
mod identity;
mod jobs;
mod later_limits;
mod laws;
mod list;
mod log_files;
mod nodes;
mod payments;
mod people;
mod postgres;
mod proxy;
mod purge;
mod raw;
mod reaches;
mod remembered;
mod repetition;
mod report;
mod routes;
mod schema;
mod scratch;
mod server;
mod sign_in;
mod silence;
mod spellings;
mod statement;
mod usage;
mod usage_reopened;
mod usage_sums;
mod verify;
mod waits;
mod webhooks;
mod withheld;
