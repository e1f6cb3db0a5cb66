//! Pause between two offers, for tests that need no wait.

use async_trait::async_trait;
use holdfast_domain::ports::Pause;

use crate::join::step_back;

/// Returns at once, after every other future of the task has had its turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPause;

#[async_trait]
impl Pause for NoPause {
    async fn pause(&self, _attempt: u32) {
        step_back().await;
    }
}
