//! Limit of open files: a connection is a file, and so is each connection that answers it. Service
//! managers start processes with a soft limit of 1,024, which `limits.connections` is beyond.

use holdfast_domain::ErrorChain;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use holdfast_config::Config;

/// For the database, its log and its connections, for listeners and pipes.
const SPARE: u64 = 256;

/// Raises the soft limit to what the configuration needs, and warns where it cannot be had.
pub(super) fn allow(config: &Config) {
    let connections = u64::try_from(config.limits.connections).unwrap_or(u64::MAX);
    // One to the caller and one to a provider for each.
    let needed = connections.saturating_mul(2).saturating_add(SPARE);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return;
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
    if now < needed {
        tracing::warn!(
            limit = now,
            needed,
            "the process may open too few files for limits.connections: raise its hard limit \
             (LimitNOFILE= of systemd, ulimits of a container), or lower limits.connections"
        );
    }
}
