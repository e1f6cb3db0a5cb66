//! Routes and their health, as several pages show them.

use crate::kit::cell::{Cell, Tone};
use holdfast_domain::admin::offer::{ModelOffer, RouteHealth, RouteOffer};

/// Head of a table of routes and their health.
pub(crate) const HEALTH_HEAD: [&str; 7] =
    ["Model", "Route", "Health", "Cools for", "Runs", "Priority", "Weight"];

/// Row of a route with its health.
pub(crate) fn health_row(model: &ModelOffer, route: &RouteOffer) -> Vec<Cell> {
    let health = match route.health {
        RouteHealth::Well => Cell::badge("well", Tone::Good),
        RouteHealth::Probe => Cell::badge("being tried", Tone::Warning),
        RouteHealth::LastResort => Cell::badge("last resort", Tone::Warning),
        RouteHealth::LeftAlone => Cell::badge("left alone", Tone::Bad),
    };
    let cools = route.cools_for.map_or(Cell::Nothing, |left| {
        Cell::Number(format!("{}.{} s", left.as_secs(), left.subsec_millis() / 100))
    });
    let runs = match route.concurrency {
        Some(most) => format!("{} of {most}", route.in_flight),
        None => route.in_flight.to_string(),
    };
    vec![
        Cell::text(model.contract.model.as_str()),
        Cell::text(&route.name),
        health,
        cools,
        Cell::Number(runs),
        Cell::count(route.priority),
        Cell::count(route.weight),
    ]
}
