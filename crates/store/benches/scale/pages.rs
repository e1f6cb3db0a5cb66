//! Pages of operations, each from a place of its own: the slowest of a hundred.

use std::time::{Duration, Instant};

use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{
    ChargeRange, OperationFilter, Order, PageCursor, PageRequest, Period, Scope,
};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::OperationStatus;
use holdfast_domain::{ApiKeyId, Micros, Timestamp, WalletId};
use holdfast_store::Store;

use crate::book::{BEGIN, DAY, OPERATIONS, id};
use crate::say;

/// Pages of a filter that are read, and rows on each.
const PAGES: i64 = 100;
const LIMIT: u32 = 50;
/// Longest time of a page.
const PAGE: Duration = Duration::from_millis(100);

fn filters() -> Vec<(&'static str, OperationFilter)> {
    let all = OperationFilter::default();
    let wallet = |number| Some(WalletId::from_bytes(id('w', number)));
    let api_key = Some(ApiKeyId::from_bytes(id('k', 57)));
    let at = |days| Some(Timestamp::from_micros(BEGIN + days * DAY));
    let created = Period { from: at(7), to: at(14) };
    let model = PublicModelId::try_from("acme/model-3").ok();
    let status = Some(OperationStatus::Refused);
    let charge = ChargeRange { from: Some(Micros::new(1_100)), to: None };
    vec![
        ("all", all.clone()),
        ("a large wallet", OperationFilter { wallet: wallet(0), ..all.clone() }),
        ("a small wallet", OperationFilter { wallet: wallet(5), ..all.clone() }),
        ("an API key", OperationFilter { api_key, ..all.clone() }),
        ("a wallet and its key", OperationFilter { wallet: wallet(5), api_key, ..all.clone() }),
        ("running", OperationFilter { scope: Scope::Running, ..all.clone() }),
        ("stale", OperationFilter { scope: Scope::Stale, ..all.clone() }),
        ("a week", OperationFilter { created, ..all.clone() }),
        ("a week of a small wallet", OperationFilter { wallet: wallet(5), created, ..all.clone() }),
        ("a model", OperationFilter { model: model.clone(), ..all.clone() }),
        ("a model of a wallet", OperationFilter { wallet: wallet(5), model, ..all.clone() }),
        ("a status that none has", OperationFilter { status, ..all.clone() }),
        ("a status of a wallet", OperationFilter { wallet: wallet(0), status, ..all.clone() }),
        ("a charge", OperationFilter { charge, ..all }),
    ]
}

/// Reads them; the filters whose pages take too long.
pub(crate) async fn read(store: &Store) -> Vec<String> {
    let mut slow = Vec::new();
    say("pages of operations: in the middle, at most");
    for (name, filter) in filters() {
        let (mut times, mut rows) = (Vec::new(), 0);
        for number in 1..=PAGES {
            let after = Some(PageCursor(number * OPERATIONS / PAGES));
            let request = PageRequest { after, ..PageRequest::first(Order::Newest, LIMIT) };
            let begun = Instant::now();
            rows += store.operations(filter.clone(), request).await.unwrap().rows.len();
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let [middle, most] = [times[49], times[98]];
        say(&format!("  {name}: {middle:.1?}, {most:.1?} ({rows} rows)"));
        slow.extend((most > PAGE).then(|| format!("pages of {name} in {PAGE:?}: {most:.1?}")));
    }
    slow
}
