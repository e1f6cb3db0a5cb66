//! Pause between two offers, for tests that need no wait.
//!
//! ```
//! use std::cell::RefCell;
//!
//! use holdfast_domain::ports::Pause as _;
//! use holdfast_testkit::{NoPause, join_all};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let order = RefCell::new(Vec::new());
//! let tasks = ["waits", "works"].map(async |task| {
//!     if task == "waits" {
//!         NoPause.pause(1).await;
//!     }
//!     order.borrow_mut().push(task);
//! });
//! join_all(tasks).await;
//! assert_eq!(order.into_inner(), ["works", "waits"]);
//! # }
//! ```

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
