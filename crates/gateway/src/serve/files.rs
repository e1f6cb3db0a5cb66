//! Limit of open files: a connection is a file, and so is each connection that answers it. Service
//! managers start processes with a soft limit of 1,024, which `limits.connections` is beyond.

use holdfast_domain::ErrorChain;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use holdfast_config::Config;

/// For the database, its log and its connections, for listeners and pipes.
const SPARE: u64 = 256;
/// For the operators' listener, with its spare places.
const OPERATORS: u64 = 320;
/// For the holders' listener, with its spare places.
const HOLDERS: u64 = 1_088;
/// For a sidecar: 2,048 connections and as many to its gateway, its spare places and its journal.
const SIDECAR: u64 = 4_352;

/// Raises the soft limit to what the configuration needs, and warns if it cannot be had.
pub(super) fn allow(config: &Config) {
    let connections = u64::try_from(config.limits.connections).unwrap_or(u64::MAX);
    let own = if config.console.holders.is_some() { HOLDERS } else { 0 };
    // One to the caller and one to a provider for each.
    let needed = connections.saturating_mul(2).saturating_add(SPARE + OPERATORS + own);
    if let Err(limit) = raise(needed) {
        tracing::warn!(
            limit,
            needed,
            "the process may open too few files for limits.connections: raise its hard limit \
             (LimitNOFILE= of systemd, ulimits of a container), or lower limits.connections"
        );
    }
}

/// Raises the soft limit to what a sidecar needs, and warns if it cannot be had.
pub(crate) fn allow_sidecar() {
    if let Err(limit) = raise(SIDECAR) {
        tracing::warn!(
            limit,
            needed = SIDECAR,
            "the process may open too few files for its connections: raise its hard limit"
        );
    }
}

/// Raises the soft limit to so many; the error is the limit that is in force, if it is lower.
fn raise(needed: u64) -> Result<(), u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
    let limit = Rlimit { current: Some(raised), maximum };
    let now = match setrlimit(Resource::Nofile, limit) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(error = %ErrorChain(&error), "the limit of open files was not raised");
            current.unwrap_or(raised)
        }
    };
    if now < needed { Err(now) } else { Ok(()) }
}
