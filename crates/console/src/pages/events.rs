//! Events: what happened, newest first, and one of them as its webhooks are sent it.

use holdfast_domain::EventId;
use holdfast_domain::admin::ResourceId;
use holdfast_domain::admin::event::{EventFilter, EventKind, EventRecord};
use serde_json::Value;

use crate::failure::Failure;
use crate::kit::{Cell, Facts, FieldKind, Filter, FormField, Page, Pages, Snippet, Table, Visit};
use crate::pages::parts::reference::{self, Names, wallet_field};

texts! { #[template(path = "pages/events.txt")] EventsText { Empty = "empty" } }

const KIND: &str = "kind";

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let found = found(&visit).await.map(|table| vec![table.into()]);
    Page::new("Events").narrowed(narrow(&visit).await?, found)
}

async fn found(visit: &Visit) -> Result<Table, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let filter = EventFilter { wallet, kind: visit.query.choice(KIND, EventKind::from_label)? };
    let pages = Pages::new(visit, "/events", &visit.query);
    let listed = visit.accounts().events(visit.principal(), filter, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let wallets = listed.rows.iter().filter_map(|event| event.wallet.map(ResourceId::Wallet));
    let names = Names::read(visit, wallets).await?;
    let rows = listed.rows.iter().map(|event| row(event, &names));
    Ok(Table::of("Newest first", rows, EventsText::Empty).next(next))
}

async fn narrow(visit: &Visit) -> Result<Filter, Failure> {
    let kinds = FieldKind::any_of("All", EventKind::ALL.iter().map(|kind| kind.label()));
    let kinds = FormField::sought(KIND, "Kind", kinds, &visit.query);
    let fields = std::iter::once(kinds).chain(wallet_field(visit).await?).collect();
    Ok(Filter::new("/events", fields))
}

fn row(event: &EventRecord, names: &Names<'_>) -> [(&'static str, Cell); 3] {
    let kind = Cell::link(event.kind.label(), format!("/events/{}", event.id));
    [("Event", kind), ("When", Cell::moment(event.created_at)), ("Wallet", wallet(event, names))]
}

fn wallet(event: &EventRecord, names: &Names<'_>) -> Cell {
    event.wallet.map_or(Cell::Nothing, |id| names.link(ResourceId::Wallet(id)))
}

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = visit.id()?;
    let event = visit.accounts().event(visit.principal(), EventId::from(id)).await?;
    let names = Names::read(&visit, event.wallet.map(ResourceId::Wallet)).await?;
    let rows = vec![
        ("Kind", Cell::text(event.kind.label())),
        ("When", Cell::moment(event.created_at)),
        ("Wallet", wallet(&event, &names)),
        ("Id", Cell::code(event.id)),
    ];
    let data = serde_json::from_str::<Value>(&event.data);
    let data = data.and_then(|data| serde_json::to_string_pretty(&data));
    let data = data.unwrap_or_else(|error| {
        tracing::error!(%error, event.id = %event.id, "the data of an event cannot be read");
        String::new()
    });
    Ok(Page::new(event.kind.label())
        .below("Events", "/events")
        .section(Facts::new("", rows))
        .section(Snippet::new("Data", data)))
}
