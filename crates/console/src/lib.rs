//! The console: pages for the people who run Holdfast, and for the holders of wallets.
//!
//! ```text
//! holdfast-http (socket) ─▶ Console::answer ─▶ guard ─▶ handler ─▶ holdfast-accounts
//!                             axum router      │          │
//!                        host, session, form ──┘          └── read, call, make a Page ─▶ shell (HTML)
//! ```
//!
//! The console is a door to the use cases and nothing more: it calls them and not the API, and decides
//! nothing. A handler makes a `page::Page` of sections; each kind of section has one template, and no page
//! has markup of its own. Every page works without JavaScript: a control is a link or a form.
//!
//! | file | what it has |
//! |---|---|
//! | `console` | the router, and the seam to whatever has the socket |
//! | `guard`, `door`, `cookie` | what every request passes first: host, origin, session, requests at once |
//! | `visitor`, `visit` | the person who is signed in, and a request of theirs |
//! | `page`, `section`, `cell` | what a page is made of |
//! | `shell` | the frame around every page: head, navigation, foot |
//! | `audience` | the roles that may sign in at a listener |
//! | `desk` | what every handler has at hand |
//! | `field` | fields of forms and filters |
//! | `form` | forms: their request key, their review, what they did |
//! | `ask`, `address` | what a request asks for, and addresses that lead to more |
//! | `value` | values of forms that have a bound: amounts, limits, moments |
//! | `moment` | moments as forms write them |
//! | `counting` | reports that may take longer than a page |
//! | `isolation` | typed texts that change nothing around them |
//! | `failure` | what could not be done, as a page |
//! | `relay` | the port to the public API, for the playground |
//! | `asset` | the stylesheet and the script |
//! | `pages` | one file a page |
//!
//! Never in here: SQL, a rule of money, a socket, an admin key, a secret in a log.

#![expect(
    unused_qualifications,
    clippy::let_underscore_must_use,
    reason = "askama's macro writes every path in full, and drops what a template does not use"
)]

mod address;
mod ask;
mod asset;
mod audience;
mod cell;
mod console;
mod cookie;
mod counting;
mod desk;
mod door;
mod failure;
mod field;
mod form;
mod guard;
mod isolation;
mod moment;
mod page;
mod pages;
mod paging;
mod relay;
mod report_file;
mod section;
mod shell;
#[cfg(test)]
mod tests;
mod value;
mod visit;
mod visitor;

pub use crate::audience::Audience;
pub use crate::console::{Console, ConsoleBody};
pub use crate::desk::ConsoleOptions;
pub use crate::relay::ApiRelay;
