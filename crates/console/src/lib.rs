//! The console: pages for the people who run Holdfast, and for the holders of wallets.
//!
//! ```text
//! holdfast-http (socket) ─▶ Console::answer ─▶ guard ─▶ handler ─▶ holdfast-accounts
//!                             axum router      │          │
//!                        host, session, form ──┘          └── read, call, make a Page ─▶ shell (HTML)
//! ```
//!
//! The console is an interface to the use cases: it calls them and not the API, and decides
//! none of them. A handler makes a `page::Page` of sections; each kind of section has one template, and no page
//! has markup of its own. Every page works without JavaScript: a control is a link or a form.
//!
//! | module | contents |
//! |---|---|
//! | `console` | the router, and the seam to the listener's sockets |
//! | `guard`, `request_origin`, `cookie` | what every request passes first: host, origin, session, requests at once |
//! | `audience` | the roles that may sign in at a listener |
//! | `failure` | what could not be done, as a page |
//! | `texts` | the blocks of a page's template, as an enum |
//! | `relay` | the port to the public API, for the playground |
//! | `kit` | the parts that pages are made of |
//! | `pages` | one module a page, and `pages::parts`: what several pages show |
//!
//! A page uses the kit and the parts, and never another page.
//!
//! Never in here: SQL, a rule of money, a socket, an admin key, a secret in a log.

#![expect(
    unused_qualifications,
    clippy::let_underscore_must_use,
    reason = "askama's macro writes every path in full, and drops what a template does not use"
)]

#[macro_use]
mod texts;

mod audience;
mod console;
mod cookie;
mod failure;
mod guard;
mod kit;
mod pages;
mod relay;
mod request_origin;
#[cfg(test)]
mod tests;

pub use crate::audience::Audience;
pub use crate::console::Console;
pub use crate::kit::{Brand, ConsoleOptions, Logo};
pub use crate::relay::ApiRelay;
