//! Operations: found by their id or by the caller's keys, and listed by what an index leads to.
//!
//! A filter by time, model or status reads a bounded window of rows: such a page may be empty and lead on.
//! Never: a request or an answer of a caller.

use holdfast_accounts::{AccountsError, OperationRecord, Reference};
use holdfast_domain::admin::ResourceId;
use holdfast_domain::admin::listing::{OperationFilter, OperationListing, Scope};
use holdfast_domain::operation::OperationStatus;
use holdfast_domain::{OperationId, RequestKey, Timestamp};
use uuid::Uuid;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::period::{FROM, ON, PRESET, PeriodChoice, TO, altered};
use crate::kit::sorting::{self, SORT, SortColumn};
use crate::kit::{
    Choices, FieldKind, Filter, FormField, Link, Page, Pages, Section, SentFields, Table, Visit,
};
use crate::pages::parts::operation::{
    self, HEAD, charge, model_field, read_model, row, status_word,
};
use crate::pages::parts::reference::{self, Names, api_key_field, wallet_field};
use crate::pages::parts::refusal;

texts! { #[template(path = "pages/operations.txt")] OperationsText { Empty = "empty" } }

const ID: &str = "id";
const REQUEST_KEY: &str = "request_key";
const SCOPE: &str = "scope";
const STATUS: &str = "status";
/// Scope of the requests that became no operation, or whose operation did not run.
const REFUSED: &str = "refused";
const SCOPES: [(&str, &str); 4] =
    [("", "All"), ("running", "Running"), ("stuck", "Stuck"), (REFUSED, "Refused")];
/// Requests of all time if the address names no period.
const PERIOD: PeriodChoice = PeriodChoice { path: "/operations", default: "all" };

/// The same of operations that run: they have no charge yet, and hold what it may be at most.
const HEAD_OF_RUNNING: [&str; 8] =
    ["Began", "Wallet", "API key", "Model", "State", "Tokens in / out", "Duration", "Holds"];

/// Order by each column of [`HEAD`].
const SORTS: [SortColumn<OperationListing>; 8] = [
    SortColumn::Number("began", |it| it.operation.created_at.as_micros().into()),
    SortColumn::None,
    SortColumn::Text("api_key", |it| it.api_key_name.clone().unwrap_or_default()),
    SortColumn::Text("model", |it| it.operation.model.to_string()),
    SortColumn::None,
    SortColumn::None,
    SortColumn::Number("duration", |it| operation::milliseconds(&it.operation).unwrap_or(-1)),
    SortColumn::Number("charge", |it| {
        charge(&it.operation).unwrap_or(it.operation.hold).get().into()
    }),
];

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let now = visit.accounts().clock().await?;
    let found = found(&visit, now).await;
    let page =
        Page::new("Requests").section(scopes(&visit.query)).section(PERIOD.links(&visit.query));
    page.narrowed(filter(&visit).await?, found)
}

async fn found(visit: &Visit, now: Timestamp) -> Result<Vec<Section>, Failure> {
    let empty = OperationsText::Empty.to_string();
    if let Some(id) = asked_id(visit).await? {
        let rows = match visit.accounts().operation(visit.principal(), id).await {
            Ok(OperationRecord { operation, situation, .. }) => {
                let of =
                    [ResourceId::Wallet(operation.wallet), ResourceId::ApiKey(operation.api_key)];
                let names = Names::read(visit, of).await?;
                vec![row((&operation, situation), charge(&operation), &names)]
            }
            // A request out of the visitor's reach looks like one that never was.
            Err(AccountsError::NotFound(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        return Ok(vec![Table::new("Found", &HEAD, rows, &empty).into()]);
    }
    if visit.query.get(SCOPE) == Some(REFUSED) {
        return Ok(vec![refusal::found(visit, PERIOD.read(&visit.query, now)?).await?.into()]);
    }
    let filter = read_filter(visit, now).await?;
    let is_of_all = filter.scope == Scope::All;
    let pages = Pages::new(visit, "/operations", &visit.query);
    let filter = &filter;
    let read = |request| async move {
        Ok(visit.accounts().operations(visit.principal(), filter.clone(), request).await?)
    };
    let listed = sorting::page(&SORTS, (&pages, &visit.query), read).await?;
    let is_sorted = visit.query.get(SORT).is_some() && listed.notice.is_none();
    let title = if is_sorted { "Requests" } else { "Newest first" };
    let table = if is_of_all {
        let rows = operation::rows(visit, &listed.rows, charge).await?;
        Table::new(title, &HEAD, rows, &empty)
    } else {
        let rows = operation::rows(visit, &listed.rows, |it| Some(it.hold)).await?;
        Table::new(title, &HEAD_OF_RUNNING, rows, &empty)
    };
    let table = table
        .keep(&["Wallet", "State"])
        .sorts(sorting::links(&SORTS, PERIOD.path, &visit.query))
        .next(listed.next);
    Ok(listed.notice.into_iter().map(Section::from).chain([table.into()]).collect())
}

/// The operation that the query names: by its id, or by an API key and its request key.
async fn asked_id(visit: &Visit) -> Result<Option<OperationId>, Failure> {
    if let Some(id) = visit.query.read::<OperationId>(ID)? {
        return Ok(Some(id));
    }
    let Some(request_key) = visit.query.read::<RequestKey>(REQUEST_KEY)? else { return Ok(None) };
    let wallet = reference::wallet(visit, &visit.query).await?;
    let missing = || Failure::field(reference::API_KEY, FieldRefusal::ApiKeyMissing);
    let api_key = reference::api_key(visit, &visit.query, wallet).await?.ok_or_else(missing)?;
    let api_key = Reference::Id(Uuid::from_bytes(api_key.to_bytes()));
    let id =
        visit.accounts().operation_id(visit.principal(), &api_key, wallet, request_key).await?;
    Ok(Some(id))
}

async fn read_filter(visit: &Visit, now: Timestamp) -> Result<OperationFilter, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let scope = match visit.query.get(SCOPE) {
        Some("running") => Scope::Running,
        Some("stuck") => Scope::Stale,
        Some(_) | None => Scope::All,
    };
    let known = |label: &str| OperationStatus::ALL.into_iter().find(|it| it.label() == label);
    Ok(OperationFilter {
        scope,
        wallet,
        api_key: reference::api_key(visit, &visit.query, wallet).await?,
        created: PERIOD.read(&visit.query, now)?,
        model: read_model(&visit.query)?,
        status: visit.query.choice(STATUS, known)?,
        ..OperationFilter::default()
    })
}

/// Links to the scopes under the same filters.
fn scopes(query: &SentFields) -> Choices {
    let chosen = query.get(SCOPE).unwrap_or("");
    let link = |(value, label): (&str, &str)| {
        let href = altered(PERIOD.path, query, &[SCOPE], &[(SCOPE, value)]);
        (Link::new(label, href), value == chosen)
    };
    Choices { label: "Scope".to_owned(), links: SCOPES.map(link).to_vec() }
}

async fn filter(visit: &Visit) -> Result<Filter, Failure> {
    let states = OperationStatus::ALL.map(|status| (status.label(), status_word(status)));
    let states = FieldKind::none_or("Any", states);
    let field = |name, label, kind| FormField::sought(name, label, kind, &visit.query);
    let mut fields = vec![
        field(ID, "Request id", FieldKind::Text),
        api_key_field(visit).await?,
        field(REQUEST_KEY, "Request key", FieldKind::Text),
    ];
    fields.extend(wallet_field(visit).await?);
    fields.extend([
        field(STATUS, "Status", states),
        model_field(visit)?,
        field(FROM, "Began from (UTC)", FieldKind::Moment),
        field(TO, "Before (UTC)", FieldKind::Moment),
    ]);
    // A form sends its own fields only: without these, *Filter* would drop the scope or the period
    // that a click has chosen.
    fields.extend(FormField::carried(&visit.query, &[SCOPE, PRESET, ON, SORT]));
    Ok(Filter::new("/operations", fields))
}
