//! Pages by SeaORM's cursor, over the number of a row (`seq`).
//!
//! ```text
//! newest first, by an index:    ... WHERE filter AND seq < after ORDER BY seq DESC LIMIT n + 1
//! newest first, without one:    the same, only within a window
//! ```
//!
//! A window has some thousands of the rows that an index leads to: of a wallet, of an API key, of all. Its
//! beginning is read first, from that index. The row beyond the limit only shows that there is a next page. The end
//! of a window is the end of its page as well, so that a page with no rows leads on, too.

use std::ops::Range;

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, Select,
};

use super::row::Row;
use super::{ReadError, ReadTransaction, read};
use crate::rows::FromCells;
use holdfast_domain::admin::listing::{
    Order, PAGE_MAX, Page, PageCursor, PageRequest, ROWS_READ_MAX,
};

/// Reads the page of what is selected, by the number in its first column.
pub(super) async fn page<E, M, T>(
    db: &impl ConnectionTrait,
    select: Select<E>,
    number: E::Column,
    PageRequest { order, after, limit }: PageRequest,
) -> Result<Page<T>, ReadError>
where
    E: EntityTrait<Model = M>,
    M: FromQueryResult + Send + Sync,
    T: FromCells + Send + Sync,
{
    let limit = limit.clamp(1, PAGE_MAX);
    let mut cursor = select.cursor_by(number);
    match order {
        Order::Newest => cursor.desc(),
        Order::Oldest => cursor.asc(),
    };
    if let Some(PageCursor(after)) = after {
        cursor.after(after);
    }
    let mut cursor = cursor.into_model::<Row<(i64, T)>>();
    // One row more than a page shows that there is a next page, without a count.
    let found = cursor.first(u64::from(limit).saturating_add(1)).all(db).await.map_err(read)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let rows = found.into_iter().map(|Row((number, row))| (PageCursor(number), row));
    Ok(Page::of(rows.collect(), limit))
}

/// Rows of which one page reads the next window.
pub(super) struct PageWindow<E: EntityTrait> {
    /// Rows that an index leads to: the selected ones, and those that the filter leaves out.
    pub(super) indexed: Select<E>,
    /// Numbers that they are among.
    pub(super) numbers: Range<i64>,
    /// Length of the window.
    pub(super) rows_max: u32,
}

impl<E: EntityTrait> PageWindow<E> {
    /// Window of a whole table, in the order of its numbers.
    pub(super) async fn of_all(
        db: &ReadTransaction,
        indexed: Select<E>,
        number: E::Column,
    ) -> Result<Self, ReadError> {
        let numbers = numbers::<E>(db, number).await?;
        Ok(Self { indexed, numbers, rows_max: ROWS_READ_MAX })
    }
}

/// Reads the page of the selected rows in a window, for a filter that finds few of its rows.
pub(super) async fn sparse_page<E, M, T>(
    db: &impl ConnectionTrait,
    select: Select<E>,
    window: PageWindow<E>,
    number: E::Column,
    request: PageRequest,
) -> Result<Page<T>, ReadError>
where
    E: EntityTrait<Model = M>,
    M: FromQueryResult + Send + Sync,
    T: FromCells + Send + Sync,
{
    let PageWindow { indexed, numbers: Range { mut start, mut end }, rows_max } = window;
    let direction = match request.order {
        Order::Newest => {
            end = request.after.map_or(end, |PageCursor(after)| end.min(after));
            sea_orm::Order::Desc
        }
        Order::Oldest => {
            let first = |PageCursor(after)| start.max(after.saturating_add(1));
            start = request.after.map_or(start, first);
            sea_orm::Order::Asc
        }
    };
    let beyond = indexed
        .select_only()
        .column(number)
        .filter(number.gte(start))
        .filter(number.lt(end))
        .order_by(number, direction)
        .offset(u64::from(rows_max))
        .into_model::<Row<i64>>();
    let beyond = beyond.one(db).await.map_err(read)?;
    // Start of the next page, if this one has read its window to the end.
    let edge = beyond.map(|Row(beyond)| match request.order {
        Order::Newest => {
            start = beyond.saturating_add(1);
            PageCursor(start)
        }
        Order::Oldest => {
            end = beyond;
            PageCursor(end.saturating_sub(1))
        }
    });
    // Bounded by numbers and not by a limit, which counts the rows that the filter lets through.
    let select = select.filter(number.gte(start)).filter(number.lt(end));
    let found = page(db, select, number, request).await?;
    Ok(Page { next: found.next.or(edge), ..found })
}

/// The numbers that a table has: from zero to beyond its last row.
pub(super) async fn numbers<E: EntityTrait>(
    db: &ReadTransaction,
    number: E::Column,
) -> Result<Range<i64>, ReadError> {
    let last = E::find().select_only().column(number).order_by_desc(number).limit(1);
    let last: Vec<i64> = db.select(last.as_query()).await?;
    Ok(0..last.first().map_or(0, |last| last.saturating_add(1)))
}

/// Number of a row created at this moment or later, the one before which was created before it; or
/// the end of these numbers. `columns` are the number and the moment of creation. Rows from after now,
/// which a clock that was ahead has left, are passed over: they would lead the search astray.
pub(super) async fn first_at<E: EntityTrait>(
    db: &ReadTransaction,
    [number, created_at]: [E::Column; 2],
    moment: i64,
    numbers: Range<i64>,
) -> Result<i64, ReadError> {
    let now = db.now().await?.as_micros();
    let Range { start: mut low, end: mut high } = numbers;
    while low < high {
        let middle = low.midpoint(high);
        // Numbers of a server have gaps: the next one that there is.
        let next = E::find()
            .select_only()
            .columns([number, created_at])
            .filter(number.gte(middle))
            .filter(created_at.lte(now))
            .order_by_asc(number)
            .limit(1);
        let next: Vec<(i64, i64)> = db.select(next.as_query()).await?;
        match next.first() {
            Some((seq, created_at)) if *created_at < moment => low = seq.saturating_add(1),
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}
