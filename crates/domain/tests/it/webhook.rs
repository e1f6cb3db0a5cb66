//! Webhooks: addresses that are sent to, URLs that are taken, and what follows a try.

mod addresses;
mod endpoints;
mod secrets;
mod tries;
