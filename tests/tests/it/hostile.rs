//! What hostile clients send: one gateway for each table of cases, over raw sockets. Every case gets its
//! row of the table of errors, or the bare status or hang-up of what is no HTTP, and binds nothing;
//! afterwards the gateway is as it was. The tables are in the files beside this one.

use holdfast_tests::{
    Account, Answer, Config, Gateway, Reply, Request, Site, Upstream, Waiting, request_key,
};

use crate::bodies::acme;
use crate::check::{ExpectedError, check_completion, until};

/// In everything that is sent. It is looked for in everything that is told and logged.
pub(crate) const CANARY: &str = "canary-of-the-hostile-4713";
/// What an answer of the upstream costs.
const CHARGE: i64 = 367;

/// A gateway, and what has been bound at it on purpose.
pub(crate) struct World {
    pub(crate) site: Site,
    pub(crate) account: Account,
    pub(crate) gateway: Gateway,
    pub(crate) upstream: Upstream,
    runs: usize,
}

/// What a case should get.
pub(crate) enum Want {
    /// One of these statuses without a body, or a hang-up.
    Bare(&'static [u16]),
    /// Its row.
    Row(Box<ExpectedError>),
    /// It is no attack: it is served, and runs.
    Served,
    /// It is no attack, and runs nothing.
    Told(u16),
}

impl World {
    pub(crate) fn new(config: impl Fn(Config) -> Config) -> Self {
        let upstream = Upstream::start(Reply::saying("Good day"));
        let usual = Config::upstream(&upstream).set("log", "level", "\"trace\"");
        let (site, account) = Site::funded(&config(usual));
        let gateway = site.serve();
        Self { site, account, gateway, upstream, runs: 0 }
    }

    /// A completion request that would be served, as it goes over the wire.
    pub(crate) fn good(&self, request_key: &str) -> String {
        self.with_body(request_key, &acme(CANARY))
    }

    pub(crate) fn with_body(&self, request_key: &str, body: &str) -> String {
        format!("{}Content-Length: {}\r\n\r\n{body}", self.head(request_key), body.len())
    }

    /// The head up to how its body is framed.
    pub(crate) fn head(&self, request_key: &str) -> String {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer \
             {}\r\nIdempotency-Key: {request_key}\r\nContent-Type: application/json\r\nX-Case: \
             {CANARY}\r\nConnection: close\r\n",
            self.account.key
        )
    }

    /// Sends these bytes and reads until the connection ends.
    pub(crate) fn answers(&self, bytes: impl AsRef<[u8]>) -> Vec<Answer> {
        Waiting::write(self.gateway.address(), bytes.as_ref()).answers()
    }

    /// One case of a table. `request_key` is what it sends where it is well formed.
    #[track_caller]
    pub(crate) fn check(&mut self, name: &str, request_key: &str, bytes: &[u8], want: &Want) {
        let answers = self.answers(bytes);
        for answer in &answers {
            assert!(!answer.everything().contains(CANARY), "{name}: {answer:?}");
        }
        match (want, answers.as_slice()) {
            (Want::Bare(_), []) => {}
            (Want::Bare(statuses), [answer]) => {
                assert!(statuses.contains(&answer.status), "{name}: {answer:?}");
                assert!(answer.body.is_empty(), "{name}: {answer:?}");
            }
            (Want::Row(expected), [answer]) => {
                drop(expected.check_case(name, answer));
            }
            (Want::Served, [answer]) => {
                assert_eq!(answer.status, 200, "{name}: {answer:?}");
                check_completion(answer, request_key, false);
                self.runs += 1;
            }
            (Want::Told(status), [answer]) => {
                assert_eq!(answer.status, *status, "{name}: {answer:?}");
            }
            (_, other) => panic!("{name}: {} answers: {other:?}", other.len()),
        }
        assert_eq!(self.upstream.runs(), self.runs, "{name}");
    }

    /// So many more have run than the table's own cases.
    pub(crate) fn ran(&mut self, runs: usize) {
        self.runs += runs;
    }

    /// The gateway serves as before, nothing was bound but on purpose, and nothing was written down.
    #[track_caller]
    pub(crate) fn check_unharmed(mut self) {
        let key = request_key();
        let request = Request::completion(&self.account.key, &key, acme("Say hello"));
        // With room for one connection, the one before it may still be about to end.
        let served = until("there is room", || {
            let answer = self.gateway.send(&request);
            (answer.status != 503 || answer.json()["error"]["code"] != "overloaded")
                .then_some(answer)
        });
        check_completion(&served, &key, false);
        self.runs += 1;
        assert_eq!(self.upstream.runs(), self.runs);
        let charged = i64::try_from(self.runs).unwrap() * CHARGE;
        assert_eq!(self.site.balance(&self.account), (10_000_000 - charged, 0));
        assert_eq!(self.site.verify()["operations"], self.runs);
        self.gateway.stop();
        let logs = self.site.logs();
        assert!(logs.contains("acme/large-1"), "it is the log");
        assert!(!logs.contains(CANARY) && !logs.contains("panicked"));
    }
}
