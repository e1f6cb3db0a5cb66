//! Bytes that a sidecar keeps at a time: of requests, which it may have to send again, and of
//! answers, which it reads whole before it writes them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of all requests at once, and of all answers: 64 MiB each.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// Budget of bytes, shared by everybody who has a clone.
#[derive(Debug, Clone)]
pub(crate) struct ByteBudget(Arc<Semaphore>);

/// Part of a budget; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: ByteBudget,
    permit: Option<OwnedSemaphorePermit>,
}

impl ByteBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_MAX)))
    }

    pub(crate) fn reserve(&self) -> Reservation {
        Reservation { budget: self.clone(), permit: None }
    }
}

impl Reservation {
    /// Takes more; false if there is no room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let Ok(bytes) = u32::try_from(bytes) else { return false };
        // Never a wait: two bodies that grow by turns would wait for each other's bytes.
        let Ok(more) = Arc::clone(&self.budget.0).try_acquire_many_owned(bytes) else {
            return false;
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_there_again() {
        let budget = ByteBudget::new();
        let mut one = budget.reserve();
        assert!(one.grow(BYTES_MAX - 1) && one.grow(1));
        let mut two = budget.reserve();
        assert!(!two.grow(1));
        drop(one);
        assert!(two.grow(BYTES_MAX));
    }
}
