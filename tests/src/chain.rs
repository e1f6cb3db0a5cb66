//! A gateway upstream of a gateway: the outer, a proxy with a fixed address, the inner, and the server of the
//! model's provider.

use std::net::SocketAddr;

use crate::config::{ACME, UPSTREAM_MODEL};
use crate::{Account, Config, Gateway, Proxy, Reply, Site, Streaming, Upstream};

/// The pieces of a streamed answer, and the whole one.
pub const PIECES: [&str; 2] = ["Good ", "day"];
/// Text of every answer.
pub const SAID: &str = "Good day";
/// Charge of the inner: what the upstream's usual completion costs.
pub const COST: i64 = 367;
/// Charge of the outer: the same tokens, and 4 micros more for a request.
pub const CHARGE: i64 = 371;

/// Both gateways, and what is behind and between them.
#[derive(Debug)]
pub struct Chain {
    /// The provider's server.
    pub upstream: Upstream,
    /// The gateway behind.
    pub inner: Node,
    /// Before the inner.
    pub between: Proxy,
    /// The gateway before.
    pub outer: Node,
}

/// A gateway, its folder, and the account that calls it.
#[derive(Debug)]
pub struct Node {
    /// The process.
    pub gateway: Gateway,
    /// Folder of the gateway.
    pub site: Site,
    /// Account that calls it.
    pub account: Account,
}

impl Chain {
    /// Starts both; `make` makes the folder and the account of each.
    #[must_use]
    pub fn start(
        make: impl Fn(&Config) -> (Site, Account),
        set: impl FnOnce(Config, &Node) -> Config,
    ) -> Self {
        let reply = Reply::as_wanted(Streaming::saying(&PIECES).reply(), Reply::saying(SAID));
        let upstream = Upstream::start(reply);
        let inner = Node::start(make(&Config::upstream(&upstream)));
        let between = Proxy::start(inner.gateway.address());
        let config = set(outer(&between, &inner.account.key), &inner);
        let outer = Node::start(make(&config));
        // The question whether keys are kept: the next connection is that of a request.
        between.wait_for(0, 1);
        Self { upstream, inner, between, outer }
    }
}

impl Node {
    /// Serves in a folder.
    #[must_use]
    pub fn start((site, account): (Site, Account)) -> Self {
        Self { gateway: site.serve(), site, account }
    }

    /// Kills the gateway, and serves again from the same folder; returns its new address.
    pub fn start_again(&mut self) -> SocketAddr {
        self.gateway.kill_in_place();
        self.gateway = self.site.serve();
        self.gateway.address()
    }
}

/// Configuration of an outer: its model is the inner's, and 4 micros dearer.
#[must_use]
pub fn outer(inner: &Proxy, api_key: &str) -> Config {
    Config::at(&format!("http://{}/v1", inner.address()))
        .set("providers.acme", "kind", "\"holdfast\"")
        .set("providers.acme", "api_key", &format!("\"{api_key}\""))
        // Each request has a connection of its own, which is cut without others.
        .set("providers.acme", "pool_idle", "\"1ms\"")
        .replace(&format!("model = \"{UPSTREAM_MODEL}\""), &format!("model = \"{ACME}\""))
        .replace("request = 7", "request = 11")
}
