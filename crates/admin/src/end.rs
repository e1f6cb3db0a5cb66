//! Ends of keys: a moment, or a span from now by the database's clock.
//!
//! A span stays a span in the body, and so in the digest: a repeated request has the same digest, although its
//! moment would be a later one by then.

use std::time::Duration;

use holdfast_accounts::fields::SPAN_SECONDS;
use holdfast_domain::Timestamp;

use crate::error::Problem;
use crate::gate::Gate;
use crate::value::Moment;

impl Gate {
    /// The end that a body requests.
    pub(crate) async fn end(
        &self,
        ends_at: Option<Moment>,
        ends_in_seconds: Option<u64>,
    ) -> Result<Option<Timestamp>, Problem> {
        let seconds = match (ends_at, ends_in_seconds) {
            (end, None) => return Ok(end.map(|Moment(at)| at)),
            (Some(_), Some(_)) => return Err(both()),
            (None, Some(seconds)) => seconds,
        };
        if !SPAN_SECONDS.contains(&seconds) {
            let message = format!("A span is of 1 to {} seconds.", SPAN_SECONDS.end());
            return Err(Problem::invalid("ends_in_seconds", message));
        }
        let now = self.accounts.clock().await?;
        Ok(Some(now.after(Duration::from_secs(seconds))))
    }

    /// The end that an edit requests: unchanged, removed, or another moment.
    #[expect(clippy::option_option, reason = "an edit tells absent from null")]
    pub(crate) async fn edited_end(
        &self,
        ends_at: Option<Option<Moment>>,
        ends_in_seconds: Option<u64>,
    ) -> Result<Option<Option<Timestamp>>, Problem> {
        match (ends_at, ends_in_seconds) {
            (None, None) => Ok(None),
            (Some(None), None) => Ok(Some(None)),
            // Null is a value too, and contradicts a span in the same body.
            (Some(None), Some(_)) => Err(both()),
            (Some(ends_at), seconds) => self.end(ends_at, seconds).await.map(Some),
            (None, seconds) => self.end(None, seconds).await.map(Some),
        }
    }
}

fn both() -> Problem {
    Problem::invalid("ends_in_seconds", "Send ends_at or ends_in_seconds, not both.")
}
