//! What the domain promises, checked through its public doors.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod binding;
mod conduct;
mod credential;
mod decide;
mod embed;
mod fingerprint;
mod histories;
mod hold;
mod identity;
mod ignored;
mod limits;
mod money;
mod names;
mod pages;
mod posting;
mod shown;
mod situation;
mod tariff;
mod tiny_journal;
mod usage;
mod usage_reports;
mod webhook;
