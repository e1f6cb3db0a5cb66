//! Audit log: sentences by day, newest first, each with its raw values folded.
//!
//! Never: a secret. A row has names and texts, as the log has them.

use holdfast_domain::admin::listing::{TrailFilter, TrailListing};
use holdfast_domain::admin::{FieldChange, ResourceId, UseCase};

use crate::failure::{Failure, FieldRefusal};
use crate::kit::{
    Cell, DayLog, FieldKind, Filter, FormField, LogEntry, Page, Pages, Section, SentFields,
    Snippet, Visit,
};
use crate::pages::trail::sentence::{Sentence, Subjects};

mod sentence;

texts! { #[template(path = "pages/trail.txt")] TrailText {
    Empty = "empty",
    Checksum = "checksum",
} }

const THING: &str = "thing";
const ACTOR: &str = "actor";
const USE_CASE: &str = "use_case";
/// Rows of a page: each may be long.
const ROWS: u32 = 25;
/// Most characters of all changes of a row: the API has them whole.
const CHARS: usize = 400;

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let found = found(&visit).await;
    Page::new("Audit log").narrowed(narrow(&visit.query), found)
}

async fn found(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let filter = read_filter(&visit.query)?;
    let is_whole = filter == TrailFilter::default();
    let pages = Pages::new(visit, "/trail", &visit.query);
    let request = pages.request()?;
    let is_first = request.after.is_none();
    let request = holdfast_domain::admin::listing::PageRequest { limit: ROWS, ..request };
    let listed = visit.accounts().trail(visit.principal(), filter, request).await?;
    let next = pages.next(listed.next)?;
    let subjects = Subjects::read(visit, &listed.rows).await?;
    let entries = listed.rows.iter().map(|listing| entry(listing, &subjects)).collect();
    let log = DayLog::new("Newest first (UTC)", entries, TrailText::Empty.to_string()).next(next);
    let mut sections = vec![log.into()];
    // Of the whole log only: the first row of a filter or of a later page is not the latest, and
    // its checksum would cover a part.
    let newest = listed.rows.first().filter(|_| is_whole && is_first);
    if let Some(newest) = newest {
        let head = newest.row.head().to_string();
        sections.push(Snippet::new(&TrailText::Checksum.to_string(), head).into());
    }
    Ok(sections)
}

fn read_filter(query: &SentFields) -> Result<TrailFilter, Failure> {
    let bad_thing = || Failure::field(THING, FieldRefusal::NotAResource);
    let thing = query.get(THING).map(|text| ResourceId::parse(text).ok_or_else(bad_thing));
    let use_case = query.choice(USE_CASE, UseCase::from_label)?;
    Ok(TrailFilter { thing: thing.transpose()?, actor: query.read(ACTOR)?, use_case })
}

fn narrow(query: &SentFields) -> Filter {
    let changes =
        UseCase::ALL.iter().filter(|it| it.is_noted_read() || !it.label().ends_with(".read"));
    let use_cases = FieldKind::any_of("Anything", changes.map(|it| it.label()));
    let fields = vec![
        FormField::sought(USE_CASE, "Action", use_cases, query),
        FormField::sought(THING, "Target (kind:id)", FieldKind::Text, query),
        FormField::sought(ACTOR, "Actor (kind:id)", FieldKind::Text, query),
    ];
    Filter::new("/trail", fields)
}

fn entry(TrailListing { row, address }: &TrailListing, subjects: &Subjects<'_>) -> LogEntry {
    let changes = row.changes.iter().map(change).collect::<Vec<_>>().join("; ");
    // Between characters: a slice that ends within one is none.
    let changes = match changes.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", changes.get(..end).unwrap_or_default()),
        None => changes,
    };
    let mut values = vec![
        ("No.", Cell::count(row.seq)),
        ("Action", Cell::text(row.use_case.label())),
        ("Actor", Cell::code(row.actor)),
        ("Target", Cell::code(row.thing)),
    ];
    if !changes.is_empty() {
        values.push(("Changes", Cell::text(changes)));
    }
    values.extend(address.as_ref().map(|address| ("Network address", Cell::code(address))));
    let sentence = Sentence::new(row, subjects).to_string();
    LogEntry { at: row.at, sentence, note: row.reason.clone(), values }
}

fn change(FieldChange { field, before, after }: &FieldChange) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{field}: {before} → {after}"),
        (None, Some(after)) => format!("{field}: {after}"),
        (Some(before), None) => format!("{field}: {before} → nothing"),
        (None, None) => field.clone(),
    }
}
