//! Pages of a list: newest first, fifty rows, by a sealed cursor in the address.
//!
//! A cursor is bound to the page's path, to the fields of its filter and to the visitor's reach
//! ([`PagedList`]). One that does not open is refused: the first page in its place would repeat rows.

use holdfast_accounts::PagedList;
use holdfast_domain::admin::listing::{PageCursor, PageRequest};
use http::StatusCode;

use crate::failure::Failure;
use crate::kit::{SentFields, Visit, with_query};

/// Rows on a page.
const ROWS: u32 = 50;
/// Field of a cursor.
pub(crate) const AFTER: &str = "after";
const BAD_CURSOR: &str = "This address leads to no page of this list: it is old, or is of another list. Open the \
    list again from its beginning.";

/// Pages of one list, under the filter of a query.
pub(crate) struct Pages<'a> {
    path: &'a str,
    query: &'a SentFields,
    list: PagedList,
}

impl<'a> Pages<'a> {
    /// Pages at this path, for this visitor.
    pub(crate) fn new(visit: &Visit, path: &'a str, query: &'a SentFields) -> Self {
        let filters = with_query("", &filters(query));
        let list = visit.accounts().paged_list(visit.principal(), path, filters.as_bytes());
        Self { path, query, list }
    }

    /// The page after the query's cursor, or the first one.
    pub(crate) fn request(&self) -> Result<PageRequest, Failure> {
        let bad = |_bad| Failure::new(StatusCode::BAD_REQUEST, BAD_CURSOR);
        self.list.request(ROWS, self.query.get(AFTER)).map_err(bad)
    }

    /// Address of the next page under the same filters, if there is one.
    pub(crate) fn next(&self, next: Option<PageCursor>) -> Result<Option<String>, Failure> {
        let Some(next) = next else { return Ok(None) };
        let cursor = self.list.cursor(next)?;
        let mut params = filters(self.query);
        params.push((AFTER, Some(&cursor)));
        Ok(Some(with_query(self.path, &params)))
    }
}

/// Fields of a query without its cursor.
fn filters(query: &SentFields) -> Vec<(&str, Option<&str>)> {
    let filters = query.iter().filter(|(name, _value)| *name != AFTER);
    filters.map(|(name, value)| (name, Some(value))).collect()
}
