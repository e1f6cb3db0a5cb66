//! Reads of changes of jobs.

use holdfast_domain::JobId;
use holdfast_domain::admin::AccountCommand;

use super::Read;
use crate::dialect::{Dialect, blob};
use crate::rows::job::state as state_of;

/// The few jobs that have not ended, by the index of what is to do; each with the rows of the trail about it.
const PENDING: &str = "SELECT j.id FROM jobs AS j WHERE j.finished_at IS NULL
    AND EXISTS (SELECT 1 FROM audit AS a WHERE a.thing_id = j.id AND a.thing_kind = 'job'
        AND a.actor = $1)
    ORDER BY j.seq LIMIT 1";
const STATE: &str = "SELECT j.state, j.step_place FROM jobs AS j WHERE j.id = $1";

/// The job of the actor that has not ended.
pub(super) fn pending(dialect: Dialect, command: &AccountCommand) -> Read {
    Read {
        statement: dialect.statement(PENDING, [command.actor.to_string().into()]),
        take: |findings, cells| {
            findings.facts.pending_job = Some(JobId::from_bytes(cells.bytes()?));
            Ok(())
        },
    }
}

/// The state of a job, which no process claims meanwhile.
pub(super) fn state(dialect: Dialect, id: JobId) -> Read {
    let sql = format!("{STATE}{}", dialect.row_lock());
    Read {
        statement: dialect.statement(&sql, [blob(id.to_bytes())]),
        take: |findings, cells| {
            findings.facts.job = Some(state_of(cells)?);
            Ok(())
        },
    }
}
