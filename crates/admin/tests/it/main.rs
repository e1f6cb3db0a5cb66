//! The API as a service over a real database: what a client sees of it, without a socket.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails panics"
)]

mod api_keys;
mod bounds;
mod changes;
mod docs;
mod events;
mod gate;
mod jobs;
mod lists;
mod money;
mod offers;
mod operations;
mod people;
mod refusals;
mod reports;
mod roots;
mod texts;
mod trail;
mod walk;
mod wallets;
mod webhooks;
mod world;
