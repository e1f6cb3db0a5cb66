//! What proves what: the one place where an answer without a completion becomes a [`Failure`], with a
//! table for each kind of provider.
//!
//! A wrong row costs money: calling a run "not run" makes somebody pay for two. So every row needs a
//! document that says so, and whatever has no row is unknown.

mod openai;

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{Failure, NotRun, Unknown};
use http::StatusCode;

pub(crate) use self::openai::of_status as openai;
use crate::transport::Break;

/// A 200 whose body is no whole completion: garbage, an error object, missing choices.
pub(crate) const UNREADABLE: Failure = Failure::Unknown(Unknown::Unreadable);

const ACCOUNT: Failure = Failure::NotRun(NotRun::Account);
const RATE_LIMITED: Failure = Failure::NotRun(NotRun::RateLimited);
const OVERLOADED: Failure = Failure::NotRun(NotRun::Overloaded);
const CONTEXT_LENGTH: Failure = Failure::Refused(ProviderRefusal::ContextLength);
const REQUEST: Failure = Failure::Refused(ProviderRefusal::Request);

/// A status, what the error must say besides, and the proof.
struct Row<M>(u16, M, Failure);

/// The proof of the first row that fits.
fn first<M>(table: &[Row<M>], status: StatusCode, says: impl Fn(&M) -> bool) -> Failure {
    let fits = |Row(of, what, _): &&Row<M>| status == *of && says(what);
    table.iter().find(fits).map_or(Failure::Unknown(Unknown::Status), |Row(_, _, proves)| *proves)
}

/// What a missing answer proves.
pub(crate) const fn of_break(cause: Break) -> Failure {
    match cause {
        Break::Unsent => Failure::NotRun(NotRun::Connect),
        Break::Sent => Failure::Unknown(Unknown::Broken),
        Break::TooLarge => UNREADABLE,
    }
}
