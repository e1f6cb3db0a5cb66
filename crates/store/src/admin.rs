//! Ports of administration on a [`Store`](crate::Store), and what gauges read of the database. Each write is a
//! transaction of [`crate::transaction`].

mod administration;
mod events;
mod facts;
mod jobs;
mod sessions;
mod webhooks;
