//! The metrics of one route: whether its breaker is open, how often it opened and why, and how often the route was
//! full. Every series begins at zero, as those of [`metrics`](crate::metrics) do.

use metrics::{Counter, Gauge, counter, gauge};

use super::circuit_breaker::CoolDownReason;
use crate::metrics::{LabelledCounter, increment, registered};

const ROUTE_COOLING: &str = "holdfast_route_cooling";
const ROUTE_COOL_DOWNS: &str = "holdfast_route_cool_downs_total";
const ROUTE_FULL: &str = "holdfast_route_full_total";

/// Metric series of one provider's model.
#[derive(Debug)]
pub(crate) struct RouteSeries {
    cooling: Gauge,
    cool_downs: [LabelledCounter; CoolDownReason::ALL.len()],
    full: Counter,
}

impl RouteSeries {
    /// Registers all series at zero, so that a rate over them is right from the first event.
    pub(crate) fn begin(provider: &str, model: &str) -> Self {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let labels = [("provider", provider), ("model", model)];
        let cool_downs = |reason: CoolDownReason| {
            let reason = reason.label();
            let [provider, model] = labels.clone();
            let labels = [provider, model, ("reason", reason.to_owned())];
            (reason, registered(counter!(ROUTE_COOL_DOWNS, &labels)))
        };
        let series = Self {
            cooling: gauge!(ROUTE_COOLING, &labels),
            cool_downs: CoolDownReason::ALL.map(cool_downs),
            full: registered(counter!(ROUTE_FULL, &labels)),
        };
        series.well();
        series
    }

    /// Sets the gauge, and counts a cool-down by its cause.
    pub(crate) fn cooling(&self, reason: CoolDownReason) {
        self.cooling.set(1);
        increment(&self.cool_downs, reason.label());
    }

    /// Clears the gauge: the route takes requests.
    pub(crate) fn well(&self) {
        self.cooling.set(0);
    }

    /// Counts a request that met the route at its limit of concurrent calls.
    pub(crate) fn full(&self) {
        self.full.increment(1);
    }
}
