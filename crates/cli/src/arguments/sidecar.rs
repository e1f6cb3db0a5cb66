//! Arguments of `holdfast sidecar`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use holdfast_sidecar::{AllowedHost, AllowedOrigin, UpstreamUrl};

use super::grant::Span;

#[derive(Debug, Args)]
pub struct Sidecar {
    /// Address of the gateway's API, its /v1 included
    #[arg(long, value_name = "URL")]
    pub upstream: UpstreamUrl,
    /// Address to listen on, only of this machine
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8089")]
    pub listen: SocketAddr,
    /// File that keeps the key of each call, so that a restart sends under the same keys; or none
    #[arg(long, value_name = "FILE|none", default_value = "holdfast-sidecar.db")]
    pub journal: PathBuf,
    /// Meaning of identical calls at the same time
    #[arg(long, value_enum, default_value = "new")]
    pub identical: Identical,
    /// Time for which a call is remembered after its client was last seen
    #[arg(long, value_name = "SPAN", default_value = "10m")]
    pub window: Span,
    /// Handling of a run whose client hangs up
    #[arg(long, value_enum, default_value = "run")]
    pub on_hangup: HangUp,
    /// Time for which a failed call to the gateway is repeated, if the client announces no timeout
    #[arg(long, value_name = "SPAN", default_value = "2m")]
    pub patience: Span,
    /// Sync each key to the disk before its call goes out, so that a loss of power does not lose it
    #[arg(long)]
    pub sync: bool,
    /// Listen on an address that other machines reach: the clients' credentials cross that network in
    /// plain text
    #[arg(long)]
    pub listen_anyway: bool,
    /// Name in `Host` to answer besides loopback names with the own port; may be given several times
    #[arg(long = "allow-host", value_name = "NAME[:PORT]")]
    pub hosts: Vec<AllowedHost>,
    /// Origin of pages in browsers that may call, such as http://localhost:3000; may be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<AllowedOrigin>,
    #[command(flatten)]
    pub hidden: HiddenOptions,
}

/// Options of the other commands, which do not apply here: without a place in `--help`.
#[derive(Debug, Args)]
pub struct HiddenOptions {
    #[arg(id = "config", long, hide = true)]
    config: Option<PathBuf>,
    #[arg(id = "server", long, hide = true)]
    server: Option<String>,
    #[arg(id = "json", long, hide = true)]
    json: bool,
}

impl HiddenOptions {
    /// True if one of them names a configuration or a server.
    pub const fn names_gateway(&self) -> bool {
        self.config.is_some() || self.server.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Identical {
    /// Each is a call of its own, and paid for
    New,
    /// One call, with one answer
    Attach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HangUp {
    /// Ends by itself, is charged, and its answer waits for a retry
    Run,
    /// Cancelled at the gateway
    Cancel,
}
