//! What a sender does, against receivers on loopback sockets; nothing leaves the machine.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod addresses;
mod answers;
mod deliverer;
mod encryption;
mod names;
mod receiver;
mod sample;
