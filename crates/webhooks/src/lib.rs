//! Sending of webhooks, as Standard Webhooks 1.0 has it: one try to deliver one event to one endpoint
//! ([`Sender`]), and the loop over what is due ([`Deliverer`]). When to try, and what follows, is the
//! domain's ([`holdfast_domain::admin::webhook`]); rows and leases are behind its port
//! ([`Deliveries`](holdfast_domain::admin::Deliveries)).
//!
//! ```text
//! Sender::permit ─▶ Sender::send ─▶ resolve ─▶ judge every address ─▶ connect to one of these
//!                        │                                                   │
//!                        │          TryResult ◀─ status ◀─ POST, signed ◀─ [TLS]
//!                        └─ all of it within 15 seconds
//! ```
//!
//! The address that was judged is the one that is connected to: the name is looked up once an attempt, and TLS
//! gets the name. So a name that changes its address between the two gains no other connection.
//!
//! Never: a redirect that is followed, a proxy of the environment (the address behind it is unknown), an
//! attempt that is repeated here, or any part of an answer but its status. Secrets, signatures, paths and
//! bodies are in no log line and no error.
//!
//! Limits: [`ENDPOINT_TRIES_MAX`] attempts at once for a webhook, 16 for the webhooks of a wallet,
//! [`PROCESS_TRIES_MAX`] for the process; [`SenderOptions::TRY_TIME_MAX`] for an attempt, of which one
//! address may take a part; a head of 16 KiB is read of an answer, and of its body as much, for a
//! second. A look-up whose attempt has run out of time keeps a blocking thread until the system's
//! resolver gives up.

mod connect;
mod deliverer;
mod exchange;
mod options;
mod origins;
mod permits;
mod resolve;
mod results;
mod sender;
mod signature;

pub use crate::deliverer::Deliverer;
pub use crate::options::SenderOptions;
pub use crate::origins::{AllowedOrigins, Receivers};
pub use crate::permits::{ENDPOINT_TRIES_MAX, PROCESS_TRIES_MAX, Permit};
pub use crate::resolve::{AddressError, Resolver, SystemResolver};
pub use crate::sender::{Delivery, Sender};
