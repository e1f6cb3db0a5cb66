//! Facts of the database as gauges: holds of active operations, wallets below their threshold, events that wait in the
//! outbox, the last verification, the window of a restore. A task reads them now and then, because a scrape must not
//! cost the database any work, however many scrape, and must answer while the database does not. They are the same at
//! every gateway.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_domain::{Currency, ErrorChain};
use holdfast_store::Store;
use holdfast_store::report::{DatabaseFacts, OutstandingHolds};
use metrics::gauge;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::telemetry::as_float;

/// Interval between two looks.
const EVERY: Duration = Duration::from_secs(30);

/// Reads until the process ends, even if the store does not answer.
pub(super) fn run(store: Store, shutdown: CancellationToken) -> impl Future<Output = ()> {
    // At once, before the first look: what may be alarmed on is there from the start.
    show(&DatabaseFacts::default());
    show_holds(&OutstandingHolds::default(), &mut BTreeSet::new());
    look_again_and_again(store, shutdown)
}

async fn look_again_and_again(store: Store, shutdown: CancellationToken) {
    let mut currencies = BTreeSet::new();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        tokio::select! {
            () = look(&store, &mut currencies) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Looks once. `currencies` are those of which anything was held before.
async fn look(store: &Store, currencies: &mut BTreeSet<Currency>) {
    match store.facts().await {
        Ok(facts) => {
            show(&facts);
            if !facts.has_holds {
                show_holds(&OutstandingHolds::default(), currencies);
                return;
            }
        }
        Err(error) => tracing::warn!(
            error = %ErrorChain(&error),
            "facts of the database cannot be read: the last are shown"
        ),
    }
    // By itself: a hold that cannot be read must not hide what a verification has found.
    match store.outstanding().await {
        Ok(holds) => show_holds(&holds, currencies),
        Err(error) => tracing::warn!(
            error = %ErrorChain(&error),
            "outstanding holds cannot be read: the last are shown"
        ),
    }
}

fn show(facts: &DatabaseFacts) {
    gauge!("holdfast_wallets_below_threshold").set(as_float(facts.low_wallets));
    gauge!("holdfast_outbox_events").set(as_float(facts.events));
    gauge!("holdfast_outbox_deliveries").set(as_float(facts.deliveries));
    let verification = facts.verification;
    let ended = verification.map_or(0, |last| last.finished_at.as_micros() / 1_000_000);
    gauge!("holdfast_verification_finished_timestamp_seconds").set(as_float(ended));
    let mismatches = verification.map_or(0, |last| last.mismatches);
    gauge!("holdfast_verification_mismatches").set(as_float(mismatches));
    let window = facts.restore.map_or(0, |open| open.unknown_until.as_micros() / 1_000_000);
    gauge!("holdfast_restore_window_end_timestamp_seconds").set(as_float(window));
}

/// Sets the gauges of holds, also of currencies that have no hold any more: a gauge keeps its last value until
/// it is set, and would show a hold that has ended for ever.
fn show_holds(holds: &OutstandingHolds, currencies: &mut BTreeSet<Currency>) {
    gauge!("holdfast_holds_outstanding").set(as_float(holds.count));
    gauge!("holdfast_holds_oldest_seconds").set(holds.oldest_age.as_secs_f64());
    currencies.extend(holds.amounts.keys().copied());
    for currency in &*currencies {
        let held = holds.amounts.get(currency).map_or(0, |held| held.get());
        let currency = currency.to_string();
        gauge!("holdfast_holds_outstanding_micros", "currency" => currency).set(as_float(held));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdfast_domain::Micros;
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn a_currency_of_which_nothing_is_held_any_more_is_shown_at_nothing() {
        let (recorder, mut currencies) =
            (PrometheusBuilder::new().build_recorder(), BTreeSet::new());
        let held = OutstandingHolds {
            count: 1,
            amounts: BTreeMap::from([(Currency::USD, Micros::new(7))]),
            oldest_age: Duration::from_secs(3),
        };
        for (holds, shown) in [(held, "7"), (OutstandingHolds::default(), "0")] {
            metrics::with_local_recorder(&recorder, || show_holds(&holds, &mut currencies));
            let rendered = recorder.handle().render();
            let series = format!("holdfast_holds_outstanding_micros{{currency=\"USD\"}} {shown}\n");
            assert!(rendered.contains(&series), "{rendered}");
        }
    }
}
