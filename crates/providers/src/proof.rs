//! What proves what: the one place where an answer without a completion becomes a [`Failure`], with a
//! table for each kind of provider.
//!
//! A wrong row costs money: calling a run "not run" makes somebody pay for two. So every row needs a
//! document that says so, and whatever has no row is unknown.

mod anthropic;
mod azure;
mod bedrock;
mod gemini;
mod openai;

use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{Failure, NotRun, Unknown, Unreadable};
use holdfast_wire::chat::upstream::UpstreamError;
use holdfast_wire::json::{Node, parse_answer};
use http::StatusCode;

pub(crate) use self::anthropic::of_status as anthropic;
pub(crate) use self::azure::of_status as azure;
pub(crate) use self::bedrock::of_status as bedrock;
pub(crate) use self::gemini::of_status as gemini;
pub(crate) use self::openai::of_status as openai;
use crate::server::Rejected;
use crate::transport::Break;

/// A 200 whose body is no whole completion: garbage, an error object, missing choices.
pub(crate) const fn unreadable(why: Unreadable) -> Failure {
    Failure::Unknown(Unknown::Unreadable(why))
}

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

/// Whether an error in OpenAI's dialect has one of these codes, if there are any.
fn is_named(error: &UpstreamError, codes: &[&str]) -> bool {
    let names = [error.code.as_deref(), error.kind.as_deref()];
    codes.is_empty() || names.into_iter().flatten().any(|name| codes.contains(&name))
}

/// What an error must say besides its status.
enum Says {
    /// Nothing in particular.
    Anything,
    /// One of these is one of its names.
    Name(&'static [&'static str]),
    /// Its message begins with one of these.
    Message(&'static [&'static str]),
}

/// What an error says of itself. No word of it leaves this module: it may quote the prompt.
#[derive(Default)]
struct Told {
    names: Vec<String>,
    message: Option<String>,
}

impl Told {
    /// Reads `{"error": {…}}`; its names are texts at these places in it.
    fn read(body: &[u8], names: &[&[&str]]) -> Self {
        let Ok(body) = parse_answer(body) else { return Self::default() };
        let Some(error) = body.get("error") else { return Self::default() };
        let text = |place: &&[&str]| {
            let found = place.iter().try_fold(error, |node, name| node.get(name));
            found.and_then(Node::as_str).map(str::to_owned)
        };
        Self { names: names.iter().filter_map(text).collect(), message: text(&&["message"][..]) }
    }

    /// Reads `{"message": …}` of an error whose name is a header: what stands before a colon, which a URL
    /// follows.
    fn named(rejected: &Rejected) -> Self {
        let body = parse_answer(&rejected.body).ok();
        let text = |name| body.as_ref().and_then(|body| body.get(name)?.as_str());
        let message = text("message").or_else(|| text("Message")).map(str::to_owned);
        let kind = rejected.kind.as_deref().and_then(|kind| kind.split(':').next());
        Self { names: kind.map(str::to_owned).into_iter().collect(), message }
    }

    fn fits(&self, says: &Says) -> bool {
        match says {
            Says::Anything => true,
            Says::Name(names) => self.names.iter().any(|name| names.contains(&name.as_str())),
            Says::Message(starts) => self
                .message
                .as_ref()
                .is_some_and(|message| starts.iter().any(|start| message.starts_with(start))),
        }
    }
}

/// What a missing answer proves.
pub(crate) const fn of_break(cause: Break) -> Failure {
    match cause {
        Break::Unsent => Failure::NotRun(NotRun::Connect),
        Break::Sent => Failure::Unknown(Unknown::Broken),
        Break::TooLarge => unreadable(Unreadable::Long),
    }
}
