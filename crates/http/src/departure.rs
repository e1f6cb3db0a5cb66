//! Departure of the public listener: the steps by which connections go elsewhere before one is refused.
//!
//! ```text
//! announced ── each answer has `connection: close` ──▶ closing ── idle connections close ──▶ over
//!              all is served                           late requests are still served    listener closed
//! ```
//!
//! Balancers keep connections and choose among them by themselves: if a connection is closed just as a request
//! comes, that request is lost. So the answers first request the close of their connections, and unused ones
//! are closed after that. Without a delay all three steps are one.

use tokio_util::sync::CancellationToken;

/// Steps of the end of a listener, each of which is taken once.
#[derive(Debug, Clone)]
pub struct Departure {
    announced: CancellationToken,
    closing: CancellationToken,
    over: CancellationToken,
}

impl Departure {
    /// A departure whose last step is this one.
    #[must_use]
    pub fn ending_with(over: &CancellationToken) -> Self {
        // Each step follows from the ones after it, and none brings on a later one.
        let closing = over.child_token();
        Self { announced: closing.child_token(), closing, over: over.clone() }
    }

    /// Has each answer from now on close its connection.
    pub fn announce(&self) {
        self.announced.cancel();
    }

    /// Closes the connections that are idle, and each of the others after its answer.
    pub fn close_idle(&self) {
        self.closing.cancel();
    }

    /// True if an answer closes its connection.
    pub(crate) fn is_announced(&self) -> bool {
        self.announced.is_cancelled()
    }

    /// The step that ends the listener.
    pub(crate) const fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Token that closes a connection accepted during shutdown. The connection serves one request first.
    pub(crate) fn of_connection(&self) -> CancellationToken {
        let step = if self.closing.is_cancelled() { &self.over } else { &self.closing };
        step.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_follows_from_the_later_ones_and_brings_on_none() {
        let over = CancellationToken::new();
        let departure = Departure::ending_with(&over);
        let early = departure.of_connection();
        departure.announce();
        assert!(departure.is_announced() && !early.is_cancelled());
        departure.close_idle();
        let late = departure.of_connection();
        assert!(early.is_cancelled() && !late.is_cancelled());
        over.cancel();
        assert!(late.is_cancelled());

        let at_once = CancellationToken::new();
        let departure = Departure::ending_with(&at_once);
        at_once.cancel();
        assert!(departure.is_announced() && departure.of_connection().is_cancelled());
    }
}
