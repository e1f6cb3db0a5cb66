//! History of a server's data: its system identifier, drawn when the data was created and the same in every copy, and
//! its timeline, which each promotion of a copy raises.
//!
//! A process follows one history: from a server that has committed a write for it on, no other system and no older
//! timeline is used until the process is started again. Without this an old primary that comes back under its address,
//! before somebody stops it, would be read and written. Connections that were kept from before a change of the history
//! have an earlier *generation*, and are given up: the server behind them may stand on the old timeline.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sqlx::postgres::PgConnection;
use sqlx::{Executor as _, Row as _};

use super::HostRefusal;
use crate::postgres::error::has_code;

/// The name of the log's segment has the timeline that is written now: that of the last checkpoint is older for minutes
/// after a promotion.
const HISTORY: &str = "SELECT system_identifier,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer FROM pg_control_system()";

/// System and timeline of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct History {
    system: i64,
    timeline: i32,
}

/// The history that this process follows.
#[derive(Default)]
pub(super) struct Histories {
    followed: Mutex<Option<History>>,
    /// Number of changes of it.
    generation: AtomicU64,
    is_unreadable: AtomicBool,
}

impl Histories {
    /// None for a server that does not show it.
    pub(super) async fn read(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Option<History>, sqlx::Error> {
        match connection.fetch_one(HISTORY).await {
            Ok(row) => {
                let (system, timeline) = (row.try_get(0)?, row.try_get(1)?);
                Ok(Some(History { system, timeline }))
            }
            // A vendor's server, which lacks the functions (42, 0A) or does not let this role call them (42).
            Err(error) if has_code(&error, &["42", "0A"]) => {
                // Once: each new connection comes here.
                if !self.is_unreadable.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "the server does not show its timeline: one that was replaced is not noticed");
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses a history that cannot follow from the one that this process follows.
    pub(super) fn check(&self, history: Option<History>) -> Result<(), HostRefusal> {
        refuse_other(history, *self.followed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of changes of the history that is followed.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Follows this history from now on, unless another connection was faster with a newer one. Returns the generation
    /// of the connection that it was read on.
    pub(super) fn accept(&self, history: Option<History>) -> Result<u64, HostRefusal> {
        // Judged and kept under one lock: two connections that end together must not lead back to the older timeline.
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        refuse_other(history, *followed)?;
        let next = history.or(*followed);
        if next != *followed {
            *followed = next;
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        Ok(self.generation())
    }
}

fn refuse_other(history: Option<History>, followed: Option<History>) -> Result<(), HostRefusal> {
    let (Some(history), Some(followed)) = (history, followed) else { return Ok(()) };
    if history.system != followed.system {
        return Err(HostRefusal::OtherSystem);
    }
    if history.timeline < followed.timeline {
        let (timeline, followed) = (history.timeline, followed.timeline);
        return Err(HostRefusal::OldTimeline { timeline, followed });
    }
    Ok(())
}
