//! Order of a table by one of its columns, as addresses have it: `sort=name`, and `sort=-name` for the other way round.
//!
//! Texts begin with A, numbers with the largest. A list is sorted if all of its rows are read at once ([`PAGE_MAX`]); a
//! longer one has a notice that it needs a filter.
//!
//! Never: a part of a list that looks like the beginning of all of it.

use std::cmp::Ordering;

use askama::Template;
use holdfast_domain::admin::listing::{Order, PAGE_MAX, Page as ListPage, PageCursor, PageRequest};

use crate::failure::Failure;
use crate::kit::period::altered;
use crate::kit::{FormField, Notice, Pages, SentFields, SortLink, Tone};

/// Parameter of the column.
pub(crate) const SORT: &str = "sort";
/// Rows on a page.
const ROWS: usize = 50;

/// Texts of a list that cannot be sorted.
#[derive(Debug, Template)]
#[template(
    source = "Only a list of at most {{ most }} rows is sorted. Filter this one first.",
    ext = "txt"
)]
struct TooLong {
    most: u32,
}

/// Value of a row by which it is sorted, with the name of its column in addresses.
#[derive(Debug)]
pub(crate) enum SortColumn<T> {
    /// No order by this column.
    None,
    Text(&'static str, fn(&T) -> String),
    Number(&'static str, fn(&T) -> i128),
}

/// Columns of a table, in their order.
pub(crate) type Sorting<T> = [SortColumn<T>];

impl<T> SortColumn<T> {
    const fn name(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Text(name, _) | Self::Number(name, _) => Some(name),
        }
    }

    fn compare(&self, one: &T, other: &T) -> Ordering {
        match self {
            Self::None => Ordering::Equal,
            Self::Text(_, value) => value(one).to_lowercase().cmp(&value(other).to_lowercase()),
            Self::Number(_, value) => value(other).cmp(&value(one)),
        }
    }
}

/// Column of an address, and true for the other way round.
fn direction(query: &SentFields) -> (Option<&str>, bool) {
    let sort = query.get(SORT);
    match sort.and_then(|sort| sort.strip_prefix('-')) {
        Some(name) => (Some(name), true),
        None => (sort, false),
    }
}

/// Sorts rows by the column of the address, if it names one. Rows that are equal there keep their order.
pub(crate) fn sort<T>(columns: &Sorting<T>, query: &SentFields, rows: &mut [T]) {
    let (name, is_reversed) = direction(query);
    if let Some(column) = columns.iter().find(|it| name.is_some() && it.name() == name) {
        let order = |one: &T, other: &T| {
            let order = column.compare(one, other);
            if is_reversed { order.reverse() } else { order }
        };
        rows.sort_by(order);
    }
}

/// Links of the heads, to the rows in the order of each column.
pub(crate) fn links<T>(
    columns: &Sorting<T>,
    path: &str,
    query: &SentFields,
) -> Vec<Option<SortLink>> {
    let (chosen, is_reversed) = direction(query);
    let link = |column: &SortColumn<T>| {
        let name = column.name()?;
        let is_text = matches!(column, SortColumn::Text(..));
        let is_chosen = chosen == Some(name);
        let order = match (is_chosen, is_text == is_reversed) {
            (true, true) => "descending",
            (true, false) => "ascending",
            (false, _) => "",
        };
        let next = if is_chosen && !is_reversed { format!("-{name}") } else { name.to_owned() };
        Some(SortLink { href: altered(path, query, &[SORT], &[(SORT, &next)]), order })
    };
    columns.iter().map(link).collect()
}

/// Field of a filter that keeps the order of the address: a form sends its own fields only.
pub(crate) fn field(query: &SentFields) -> Option<FormField> {
    query.get(SORT).map(|sort| FormField::hidden_value(SORT, sort))
}

/// Rows of a page of a list in the order of its address.
pub(crate) struct SortedRows<T> {
    pub(crate) rows: Vec<T>,
    /// Address of the next page.
    pub(crate) next: Option<String>,
    /// Notice of a list that is too long to be sorted.
    pub(crate) notice: Option<Notice>,
}

/// Reads a page of a list, in the order of a column or in its own.
pub(crate) async fn page<T, F>(
    columns: &Sorting<T>,
    (pages, query): (&Pages<'_>, &SentFields),
    read: impl Fn(PageRequest) -> F,
) -> Result<SortedRows<T>, Failure>
where
    F: Future<Output = Result<ListPage<T>, Failure>>,
{
    let request = pages.request()?;
    let name = direction(query).0;
    let mut notice = None;
    if name.is_some() && columns.iter().any(|it| it.name() == name) {
        let ListPage { mut rows, next, .. } =
            read(PageRequest::first(Order::Newest, PAGE_MAX)).await?;
        if next.is_none() {
            sort(columns, query, &mut rows);
            // The list may have fewer rows than at the page before.
            let passed = request.after.map_or(0, |PageCursor(rows)| rows);
            let passed = usize::try_from(passed).unwrap_or(0).min(rows.len());
            let end = (passed + ROWS).min(rows.len());
            let next = i64::try_from(end).ok().filter(|_| end < rows.len()).map(PageCursor);
            let next = pages.next(next)?;
            rows.truncate(end);
            rows.drain(..passed);
            return Ok(SortedRows { rows, next, notice });
        }
        notice = Some(Notice::new(Tone::Plain, TooLong { most: PAGE_MAX }.to_string()));
    }
    let listed = read(request).await?;
    Ok(SortedRows { rows: listed.rows, next: pages.next(listed.next)?, notice })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &Sorting<(&str, i128)> = &[
        SortColumn::Text("name", |it| it.0.to_owned()),
        SortColumn::None,
        SortColumn::Number("amount", |it| it.1),
    ];

    fn query(text: &str) -> SentFields {
        SentFields::parse(text.as_bytes())
    }

    #[test]
    fn texts_begin_with_a_and_numbers_with_the_largest() {
        for (sort_by, order) in [
            ("", ["b", "A", "c"]),
            ("sort=name", ["A", "b", "c"]),
            ("sort=-name", ["c", "b", "A"]),
            ("sort=amount", ["c", "A", "b"]),
            ("sort=-amount", ["b", "A", "c"]),
            ("sort=colour", ["b", "A", "c"]),
        ] {
            let mut rows = [("b", 1), ("A", 2), ("c", 3)];
            sort(COLUMNS, &query(sort_by), &mut rows);
            assert_eq!(rows.map(|row| row.0), order, "{sort_by}");
        }
    }

    #[test]
    fn a_head_leads_to_its_order_and_from_there_to_the_other_one() {
        let of = |text: &str| -> Vec<_> {
            let links = links(COLUMNS, "/x", &query(text));
            links.into_iter().map(|it| it.map(|it| (it.order, it.href))).collect()
        };
        let link = |order, href: &str| Some((order, href.to_owned()));
        assert_eq!(
            of("a=1&after=7"),
            [link("", "/x?sort=name&a=1"), None, link("", "/x?sort=amount&a=1")]
        );
        assert_eq!(of("sort=name")[0], link("ascending", "/x?sort=-name"));
        assert_eq!(of("sort=-name")[0], link("descending", "/x?sort=name"));
        assert_eq!(of("sort=amount")[2], link("descending", "/x?sort=-amount"));
        assert_eq!(of("sort=-amount")[2], link("ascending", "/x?sort=amount"));
    }
}
