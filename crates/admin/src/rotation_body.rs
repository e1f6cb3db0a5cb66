//! Body of a rotation, of an API key or an admin key.

use std::time::Duration;

use holdfast_accounts::fields;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Problem;
use crate::request::ChangeBody;
use crate::value::schema::ReasonText;

/// Time that the earlier credentials stay valid if the request has none.
const GRACE_SECONDS: u64 = 24 * 3_600;

/// Rotation of an API key or an admin key.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotationBody {
    /// Time that the earlier credentials are still accepted, in seconds; a day if absent.
    #[serde(default = "grace_seconds")]
    #[schema(required = false, minimum = 0, maximum = 3_155_760_000_u64)]
    grace_seconds: u64,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

const fn grace_seconds() -> u64 {
    GRACE_SECONDS
}

impl RotationBody {
    pub(crate) fn grace(&self) -> Result<Duration, Problem> {
        if !fields::GRACE_SECONDS.contains(&self.grace_seconds) {
            let message = format!("A grace is of at most {} seconds.", fields::GRACE_SECONDS.end());
            return Err(Problem::invalid("grace_seconds", message));
        }
        Ok(Duration::from_secs(self.grace_seconds))
    }
}

impl ChangeBody for RotationBody {}
