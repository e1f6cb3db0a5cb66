//! The audit of a ledger: its rules ([`verify`]), which are pure, and the pages of rows that it reads.

mod pages;
pub mod verify;
