//! Pages of lists: newest first, fifty rows, by a cursor that is the number where a page ended.

use holdfast_domain::listing::{Order, PageCursor, PageRequest};

use crate::address::with_query;
use crate::ask::SentFields;
use crate::failure::Failure;

/// Rows on a page.
const ROWS: u32 = 50;
const AFTER: &str = "after";

/// The page that a query asks for.
pub(crate) fn request(query: &SentFields) -> Result<PageRequest, Failure> {
    let after = query.read(AFTER)?.map(PageCursor);
    Ok(PageRequest { order: Order::Newest, after, limit: ROWS })
}

/// Address of the next page under the same filters, where there is one.
pub(crate) fn next(path: &str, query: &SentFields, next: Option<PageCursor>) -> Option<String> {
    let PageCursor(after) = next?;
    let after = after.to_string();
    let mut params: Vec<_> = query
        .iter()
        .filter(|(name, _)| *name != AFTER)
        .map(|(name, value)| (name, Some(value)))
        .collect();
    params.push((AFTER, Some(&after)));
    Some(with_query(path, &params))
}
