//! The world of most end-to-end tests: one gateway, one upstream that does as it is told, and one account with
//! 10.00 USD.
//!
//! A file that asks for more of it adds its own functions in an `impl World` of its own, so that a test names its
//! subject and not its set-up.

use holdfast_tests::{Account, Answer, Config, Events, Gateway, Reply, Request, Site, Upstream};

pub(crate) struct World {
    pub(crate) upstream: Upstream,
    pub(crate) site: Site,
    pub(crate) account: Account,
    pub(crate) gateway: Gateway,
}

impl World {
    /// The upstream says "Good day" to everything.
    pub(crate) fn new() -> Self {
        Self::configured(|config| config)
    }

    /// The same under a changed configuration.
    pub(crate) fn configured(change: impl FnOnce(Config) -> Config) -> Self {
        Self::replying(Reply::saying("Good day"), change)
    }

    /// The upstream replies so to everything.
    pub(crate) fn replying(reply: Reply, change: impl FnOnce(Config) -> Config) -> Self {
        Self::with(reply, |upstream| change(Config::upstream(upstream)))
    }

    /// The same under a configuration that is made for the upstream.
    pub(crate) fn with(reply: Reply, config: impl FnOnce(&Upstream) -> Config) -> Self {
        let upstream = Upstream::start(reply);
        let (site, account) = Site::funded(&config(&upstream));
        let gateway = site.serve();
        Self { upstream, site, account, gateway }
    }

    /// The models are simulated: nothing reaches the upstream.
    pub(crate) fn simulated(change: impl FnOnce(Config) -> Config) -> Self {
        Self::with(Reply::Silence, |_upstream| change(Config::simulated()))
    }

    pub(crate) fn request(&self, request_key: &str, body: &str) -> Request {
        Request::completion(&self.account.key, request_key, body)
    }

    pub(crate) fn complete(&self, request_key: &str, body: &str) -> Answer {
        self.gateway.complete(&self.account, request_key, body)
    }

    /// A streamed answer from its beginning on.
    pub(crate) fn events(&self, request_key: &str, body: &str) -> Events {
        self.request(request_key, body).begin(self.gateway.address()).events()
    }
}
