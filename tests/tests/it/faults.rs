//! What stands before a gateway and answers like one that is in trouble: the first request with the text of a fault
//! meets it, and everything else is the gateway's own.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use holdfast_tests::upstream::{ArrivedRequest, Judge};
use holdfast_tests::{Reply, Upstream, Waiting};
use holdfast_wire::error::{Code, ErrorBody};

/// What goes wrong, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error instead of an answer.
    Error(Code),
    /// An answer whose connection ends in the middle of its body.
    Cut,
    /// The same of a stream.
    CutStream,
}

impl Fault {
    /// In the order of the table's columns.
    pub(crate) const ALL: [Self; 7] = [
        Self::Error(Code::OperationInProgress),
        Self::Error(Code::RateLimitExceeded),
        Self::Error(Code::Overloaded),
        Self::Error(Code::ProviderRefused),
        Self::Error(Code::OutcomeUnknown),
        Self::Cut,
        Self::CutStream,
    ];

    /// The prompt that meets it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Error(code) => format!("meet {}", code.label()),
            Self::Cut => "meet a cut".to_owned(),
            Self::CutStream => "meet a stream that is cut".to_owned(),
        }
    }

    /// Whether another try helps.
    pub(crate) fn is_passing(self) -> bool {
        match self {
            Self::Error(code) => code.retry(),
            Self::Cut | Self::CutStream => true,
        }
    }

    /// Whether the request runs before it meets it.
    pub(crate) fn has_run(self) -> bool {
        matches!(self, Self::Cut | Self::CutStream)
    }

    fn reply(self, gateway: SocketAddr, arrived: &ArrivedRequest) -> String {
        match self {
            Self::Error(code) => error(code),
            Self::Cut | Self::CutStream => {
                // The connection was to stay: whoever is told of its end may take that for the answer's.
                let mut answer = pass_on(gateway, arrived).replacen("connection: close\r\n", "", 1);
                let head = answer.find("\r\n\r\n").unwrap();
                answer.truncate(head + (answer.len() - head) / 2);
                answer
            }
        }
    }
}

/// A server before this gateway.
pub(crate) fn before(gateway: SocketAddr) -> Upstream {
    let met = Mutex::new(BTreeSet::new());
    Upstream::start(Reply::Judged(Judge::new(move |arrived| {
        let is_asked = |fault: &Fault| arrived.body.contains(&format!("{:?}", fault.text()));
        let fault = Fault::ALL.into_iter().find(is_asked);
        let fault = fault.filter(|fault| met.lock().unwrap().insert(fault.text()));
        Reply::Raw(match fault {
            Some(fault) => fault.reply(gateway, arrived),
            None => pass_on(gateway, arrived),
        })
    })))
}

/// A server before this gateway that is at work on something else for so many tries.
pub(crate) fn busy_before(gateway: SocketAddr, tries: usize) -> Upstream {
    let left = AtomicUsize::new(tries);
    Upstream::start(Reply::Judged(Judge::new(move |arrived| {
        let is_busy = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        let busy = || error(Code::OperationInProgress);
        Reply::Raw(if is_busy { busy() } else { pass_on(gateway, arrived) })
    })))
}

/// Keys of the requests with this prompt, in their order.
pub(crate) fn keys(server: &Upstream, text: &str) -> Vec<Option<String>> {
    let quoted = format!("{text:?}");
    let arrived = server.arrived().into_iter().filter(|arrived| arrived.body.contains(&quoted));
    let key = |name: &String| name == "idempotency-key";
    let keys = arrived.map(|it| it.headers().into_iter().find(|(name, _)| key(name)));
    keys.map(|header| header.map(|(_, key)| key)).collect()
}

/// An error as the gateway tells it, soon to be asked again where that helps.
fn error(code: Code) -> String {
    let body = String::from_utf8(ErrorBody::new(code).render()).unwrap();
    let advice = if code.retry() { "retry-after: 1\r\nretry-after-ms: 500\r\n" } else { "" };
    let (status, retry, length) = (code.status(), code.retry(), body.len());
    format!(
        "HTTP/1.1 {status} Trouble\r\ncontent-type: application/json\r\nx-should-retry: {retry}\r\n{advice}connection: \
         close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// The gateway's whole answer.
fn pass_on(gateway: SocketAddr, arrived: &ArrivedRequest) -> String {
    let is_kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
    let lines: Vec<_> = arrived.head.trim_end().split("\r\n").filter(is_kept).collect();
    let bytes = format!("{}\r\nconnection: close\r\n\r\n{}", lines.join("\r\n"), arrived.body);
    Waiting::write(gateway, bytes.as_bytes()).rest()
}
