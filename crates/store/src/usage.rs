//! Sums of usage in the making: by the hour, as rows keep them, and by group, as a report reads them.
//! Groups and rows of a report are the domain's ([`holdfast_domain::admin::report`]).

use holdfast_domain::OperationId;

pub(crate) mod hour;
pub(crate) mod late_cost;
mod sums;

pub(crate) use self::sums::{GroupKey, Names, Sums};

/// Operations whose cost no run can have caused, and which are not noted as excluded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsurdCosts {
    /// The first of them.
    pub first: OperationId,
    /// Number of them.
    pub operations: u64,
}

/// Progress of summing what has finished, which makes reports fast and changes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummingProgress {
    /// A step was made, by this process or another; there may be more to sum.
    Step,
    /// Everything that is old enough is summed.
    Done,
}
