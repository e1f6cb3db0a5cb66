//! Digest of the settings that this process runs under, kept in its node's row: if those of two live nodes
//! differ, `node list` and `GET /admin/v1/nodes` show it.
//!
//! The digest is written after the name was taken, and again after each reload that changed a setting. A node
//! serves without waiting for that, and a write that fails is tried again.

use std::future::pending;
use std::time::Duration;

use holdfast_config::Config;
use holdfast_domain::ErrorChain;
use holdfast_domain::operation::Node;
use holdfast_domain::secret::{SettingsDigest, SettingsKey};
use holdfast_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Pause before a write that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// The side that knows the settings: publishes each change of them.
#[derive(Debug)]
pub(super) struct SettingsSource {
    key: SettingsKey,
    digest: watch::Sender<SettingsDigest>,
}

/// The side that keeps them in the node's row.
#[derive(Debug)]
pub(super) struct SettingsKeeper {
    store: Store,
    node: Node,
    digest: watch::Receiver<SettingsDigest>,
}

impl SettingsSource {
    /// The settings that the process starts with.
    pub(super) fn new(config: &Config, key: SettingsKey) -> Self {
        let (digest, _receiver) = watch::channel(config.settings_digest(&key));
        Self { key, digest }
    }

    /// The other side, for the row of this node.
    pub(super) fn keeper(&self, store: Store, node: Node) -> SettingsKeeper {
        SettingsKeeper { store, node, digest: self.digest.subscribe() }
    }

    /// Publishes the settings that run from now on.
    pub(super) fn publish(&self, config: &Config) {
        self.digest.send_replace(config.settings_digest(&self.key));
    }
}

impl SettingsKeeper {
    /// Keeps the row in step with the published settings, until the process ends.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            // One statement: dropped, it was made or not, and the row goes with the process.
            () = self.keep() => {}
            () = shutdown.cancelled() => {}
        }
    }

    async fn keep(&mut self) {
        loop {
            let digest = *self.digest.borrow_and_update();
            if self.was_kept(digest).await {
                if self.digest.changed().await.is_err() {
                    // The source is gone: no other digest will come.
                    pending::<()>().await;
                }
            } else {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    async fn was_kept(&self, digest: SettingsDigest) -> bool {
        let noted = self.store.note_settings(&self.node, digest).await;
        if let Err(error) = &noted {
            tracing::warn!(error = %ErrorChain(error), "the settings of this node were not \
                published to the others");
        }
        noted.is_ok()
    }
}
