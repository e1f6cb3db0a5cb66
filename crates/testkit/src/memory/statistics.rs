//! Statistics in memory: rings and counts of refused requests, attempts on routes, and their lists.
//!
//! The rules are those of the domain ([`place`], [`RouteHour::add`]); the fake only has the rows. So the laws compare
//! what a database stores with the same rules over plain lists.
//!
//! A batch of refused requests may come again, because the answer to the first one was lost: a request whose id is
//! there already is not added a second time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::listing::{Order, Page, PageCursor, PageRequest};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter, RefusedRequests, RouteReports};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{AdditionError, Unavailable};
use holdfast_domain::statistics::ring::{Slot, place};
use holdfast_domain::statistics::{
    BreakerReport, FAILURES_KEPT, NodeBreaker, RefusalBatch, RefusalHour, RefusedRequest,
    RouteFailure, RouteHour,
};
use holdfast_domain::{NodeName, RequestId, Statistics, Timestamp};

use super::MemoryJournal;
use crate::join::step_back;

#[async_trait]
impl Statistics for MemoryJournal {
    async fn add_refusals(&self, refusals: Arc<RefusalBatch>) -> Result<(), AdditionError> {
        step_back().await;
        let mut state = self.state();
        for count in &refusals.counts {
            let counted = state.refusal_hours.entry(count.of.clone()).or_insert(0);
            *counted = counted.saturating_add(count.count);
        }
        let keys: BTreeSet<_> = refusals.listed.iter().map(|request| request.api_key).collect();
        for key in keys {
            let kept = state.refusals.iter().filter(|(_, request)| request.api_key == key);
            let slot = |(number, request): &(u32, RefusedRequest)| Slot {
                number: *number,
                code: request.code.to_string(),
            };
            let kept: Vec<Slot> = kept.map(slot).collect();
            // A batch may come again after an answer that was lost.
            let is_new = |request: &&RefusedRequest| {
                request.api_key == key && state.refusals.iter().all(|(_, it)| it.id != request.id)
            };
            let new: Vec<_> = refusals.listed.iter().filter(is_new).collect();
            let codes: Vec<&str> = new.iter().map(|request| request.code.as_ref()).collect();
            let change = place(&kept, &codes);
            state.refusals.retain(|(number, request)| {
                request.api_key != key || !change.freed.contains(number)
            });
            let placed = change.placed.iter();
            let placed =
                placed.filter_map(|(slot, at)| new.get(*at).map(|it| (*slot, (*it).clone())));
            state.refusals.extend(placed);
        }
        Ok(())
    }

    async fn add_route_hours(&self, hours: Arc<Vec<RouteHour>>) -> Result<(), AdditionError> {
        step_back().await;
        let mut state = self.state();
        for more in hours.iter() {
            match state.route_hours.entry(more.key()) {
                Entry::Occupied(mut row) => row.get_mut().add(more),
                Entry::Vacant(place) => drop(place.insert(more.clone())),
            }
        }
        Ok(())
    }

    async fn add_route_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError> {
        step_back().await;
        let mut state = self.state();
        for failure in failures.iter() {
            let kept = state.route_failures.entry(Arc::clone(&failure.route)).or_default();
            kept.push(failure.clone());
            kept.sort_by_key(|failure| std::cmp::Reverse(failure.at));
            kept.truncate(FAILURES_KEPT);
        }
        Ok(())
    }

    async fn set_route_states(
        &self,
        node: &Node,
        breakers: &[BreakerReport],
    ) -> Result<(), Unavailable> {
        step_back().await;
        let mut state = self.state();
        if state.nodes.get(&node.name).is_some_and(|lease| lease.node == *node) {
            state.route_states.insert(node.name.clone(), (node.clone(), breakers.to_vec()));
        }
        Ok(())
    }

    async fn purge_hours(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let before = state.tick().before(age);
        let is_old = |of: &&RefusalHour| of.hour < before;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let old: Vec<_> = state.refusal_hours.keys().filter(is_old).take(limit).cloned().collect();
        state.refusal_hours.retain(|of, _count| !old.contains(of));
        let attempts = state.route_hours.keys().filter(|(hour, ..)| *hour < before);
        let attempts: BTreeSet<_> = attempts.take(limit).cloned().collect();
        state.route_hours.retain(|key, _row| !attempts.contains(key));
        let mut rows = old.len() + attempts.len();
        let mut left = limit;
        for failures in state.route_failures.values_mut() {
            failures.retain(|failure| {
                let stays = failure.at >= before || left == 0;
                left -= usize::from(!stays);
                stays
            });
        }
        rows += limit - left;
        Ok(u64::try_from(rows).unwrap_or(u64::MAX))
    }
}

#[async_trait]
impl RefusedRequests for MemoryJournal {
    async fn refused_requests(
        &self,
        filter: RefusalFilter,
        PageRequest { order, after, limit }: PageRequest,
    ) -> Result<Page<RefusedRequest>, Unavailable> {
        step_back().await;
        let state = self.state();
        let numbered = (1..).map(PageCursor).zip(&state.refusals);
        let mut rows: Vec<_> = numbered
            .filter(|(_, (_, request))| filter.admits(request))
            .map(|(place, (_, request))| (place, request.clone()))
            .collect();
        if order == Order::Newest {
            rows.reverse();
        }
        let is_after = |place: PageCursor| match (after, order) {
            (None, _) => true,
            (Some(after), Order::Newest) => place.0 < after.0,
            (Some(after), Order::Oldest) => place.0 > after.0,
        };
        rows.retain(|(place, _)| is_after(*place));
        Ok(Page::of(rows, usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    async fn refused_request(&self, id: RequestId) -> Result<Option<RefusedRequest>, Unavailable> {
        step_back().await;
        let state = self.state();
        let found = state.refusals.iter().find(|(_, request)| request.id == id);
        Ok(found.map(|(_, request)| request.clone()))
    }

    async fn refusal_hours(
        &self,
        filter: RefusalFilter,
        limit: u32,
    ) -> Result<Vec<HourlyRefusals>, Unavailable> {
        step_back().await;
        let (from, to) = filter.period.bounds();
        let is_counted = |of: &RefusalHour| {
            filter.wallet.is_none_or(|wallet| wallet == of.wallet)
                && filter.api_key.is_none_or(|api_key| api_key == of.api_key)
                && filter.code.as_deref().is_none_or(|code| code == of.code)
                && (from..to).contains(&of.hour.as_micros())
        };
        let mut sums: BTreeMap<_, u64> = BTreeMap::new();
        for (of, count) in self.state().refusal_hours.iter().filter(|(of, _)| is_counted(of)) {
            let sum = sums.entry((std::cmp::Reverse(of.hour), of.code.to_string())).or_insert(0);
            *sum = sum.saturating_add(*count);
        }
        let hours = sums.into_iter().map(|((hour, code), count)| HourlyRefusals {
            hour: hour.0,
            code,
            count,
        });
        Ok(hours.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }
}

#[async_trait]
impl RouteReports for MemoryJournal {
    async fn route_hours(
        &self,
        from: Timestamp,
        route: Option<&str>,
    ) -> Result<Vec<RouteHour>, Unavailable> {
        step_back().await;
        let state = self.state();
        let wanted = state
            .route_hours
            .values()
            .filter(|row| row.hour >= from && route.is_none_or(|route| *row.route == *route));
        Ok(wanted.cloned().collect())
    }

    async fn route_failures(&self, route: &str) -> Result<Vec<RouteFailure>, Unavailable> {
        step_back().await;
        Ok(self.state().route_failures.get(route).cloned().unwrap_or_default())
    }

    async fn node_breakers(&self) -> Result<Vec<NodeBreaker>, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let of_node = |(name, (node, reports)): (&NodeName, &(Node, Vec<BreakerReport>))| {
            let lease = state.nodes.get(name)?;
            let is_known = lease.node == *node && lease.ends_at > now;
            let breaker = |report: &BreakerReport| NodeBreaker {
                node: name.clone(),
                is_known,
                report: report.clone(),
            };
            Some(reports.iter().map(breaker).collect::<Vec<_>>())
        };
        let mut breakers: Vec<NodeBreaker> =
            state.route_states.iter().filter_map(of_node).flatten().collect();
        breakers.sort_by_key(|breaker| Arc::clone(&breaker.report.route));
        Ok(breakers)
    }
}
