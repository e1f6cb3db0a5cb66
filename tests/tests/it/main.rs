//! The gateway as its users meet it: the real binary, real sockets, its real database file, and
//! providers that answer, misbehave and go away.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests end the test where something is not as it should be"
)]

mod admin;
mod administration;
mod administration_described;
mod answers;
mod beside;
mod between_turns;
mod bodies;
mod books;
mod browser;
mod canary;
mod cancel;
mod capacity;
mod check;
mod cli;
mod clients;
mod compose;
mod configuration;
mod console;
mod console_hostile;
mod cors;
mod costs;
mod coverage;
mod crash;
mod cut;
mod damaged;
mod described;
mod drain;
mod embedded;
mod exposure;
mod grants;
mod helpers;
mod hostile;
mod hostile_bodies;
mod hostile_fields;
mod hostile_framing;
mod hostile_heads;
mod hostile_kinds;
mod hostile_memory;
mod hostile_slow;
mod hostile_upstreams;
mod idempotency;
mod kinds;
mod kinds_tools;
mod leaks;
mod limits;
mod lookups;
mod media;
mod mistakes;
mod nodes;
mod offers;
mod one_core;
mod outcomes;
mod outgoing;
mod patience;
mod quotes;
mod rates;
mod readme;
mod receiver;
mod recorded;
mod refusals;
mod relays;
mod reload;
mod remote;
mod remote_bulk;
mod remote_reads;
mod remote_tls;
mod replay_only;
mod roles;
mod rotation;
mod routes;
mod second_turns;
mod sockets;
mod storage;
mod streaming;
mod streams;
mod streams_live;
mod suspension;
mod taken_over;
mod told;
mod tools;
mod upstream;
mod upstream_streams;
mod usage;
mod usage_history;
mod vectors;
mod webhooks;
mod webhooks_delivered;
mod webhooks_made;
mod wire;
