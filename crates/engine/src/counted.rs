//! The journal as this process commits to it: counts what operations come to, by whosever word: their
//! owner's, a retry's, a look-up's, the reconciler's. Not a change whose verdict was lost on the way.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::operation::{Change, Effect, Node, Receipt, Snapshot};
use holdfast_domain::ports::{CommitError, Leased, Unavailable};
use holdfast_domain::usage::{Kind, UsageRecord};
use holdfast_domain::{Journal, OperationId};
use metrics::counter;

/// A journal whose commits are counted.
pub(crate) struct Counted(pub(crate) Arc<dyn Journal>);

#[async_trait]
impl Journal for Counted {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        self.0.load(operation).await
    }

    async fn commit(&self, change: Arc<Change>) -> Result<Receipt, CommitError> {
        let receipt = self.0.commit(Arc::clone(&change)).await?;
        match &*change {
            Change::Operation(transition) => count(&transition.effect),
            Change::Posting(_) => {}
        }
        Ok(receipt)
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        self.0.due(limit).await
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<Leased>, Unavailable> {
        self.0.leased_to(node).await
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        self.0.purge(age, limit).await
    }
}

/// A recorded result counts as recorded, and as completed when it is settled; its meters once.
fn count(effect: &Effect) {
    let (outcome, usage) = match effect {
        Effect::Complete { usage, .. } => ("completed", Some(usage)),
        Effect::Record { usage, .. } => ("recorded", Some(usage)),
        Effect::Settle => ("completed", None),
        Effect::Open { .. } => ("open", None),
        Effect::Refuse { .. } => ("refused", None),
        Effect::Abandon { .. } => ("abandoned", None),
        Effect::Admit(_) | Effect::Reopen(_) | Effect::AskCancel => return,
    };
    counter!("holdfast_operations_total", "outcome" => outcome).increment(1);
    if let Some(UsageRecord { metered, shortfall, .. }) = usage {
        let shortfall = u64::try_from(shortfall.get()).unwrap_or(0);
        counter!("holdfast_shortfall_micros_total").increment(shortfall);
        for (kind, tokens) in [
            (Kind::Input, metered.meters.prompt_tokens()),
            (Kind::Output, metered.meters.completion_tokens()),
        ] {
            counter!("holdfast_tokens_total", "kind" => kind.label()).increment(tokens);
        }
    }
}
