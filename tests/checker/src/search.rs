//! Search for an order: steps with the moments between which each took effect, given to the checker of `todc-utils`.

use todc_utils::specifications::Specification;
use todc_utils::{Action, History, WGLChecker};

/// A step of a model, and the moments between which it took effect.
#[derive(Debug, Clone)]
pub(crate) struct Interval<T> {
    pub(crate) called: u64,
    /// `None`: at any moment after the call, or never.
    pub(crate) returned: Option<u64>,
    pub(crate) step: T,
}

/// True if the steps have an order that the model allows, in which no step is before another one that had returned
/// when it was called.
pub(crate) fn has_order<M: Specification>(steps: &[Interval<M::Operation>]) -> bool {
    if steps.is_empty() {
        return true;
    }
    // A call goes before a return of the same moment: they overlap, so that a clock that is too coarse
    // proves nothing.
    let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(steps.len() * 2);
    for (process, step) in steps.iter().enumerate() {
        moments.push((step.called, false, process));
        // Last of all, a step has no effect on any other: that is how it never happens.
        moments.push((step.returned.unwrap_or(u64::MAX), true, process));
    }
    moments.sort_unstable();
    let actions = moments.into_iter().filter_map(|(_, is_return, process)| {
        let step = steps.get(process)?.step.clone();
        Some((process, if is_return { Action::Response(step) } else { Action::Call(step) }))
    });
    WGLChecker::<M>::is_linearizable(History::from_actions(actions.collect()))
}
