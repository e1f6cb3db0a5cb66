//! Lists of the store, read page by page, for commands that print them as a whole.

use holdfast_domain::listing::{Order, Page, PageRequest};

/// Rows of a list that has no limit.
pub(super) const ALL: u32 = u32::MAX;

/// Reads the first rows of a list, page by page. Returns true where there are more.
pub(super) async fn read<T, E, F>(
    order: Order,
    limit: u32,
    page: impl Fn(PageRequest) -> F,
    mut each: impl FnMut(T),
) -> Result<bool, E>
where
    F: Future<Output = Result<Page<T>, E>>,
{
    let mut left = limit;
    let mut request = PageRequest::first(order, limit);
    loop {
        // One more tells whether there are more.
        request.limit = left.saturating_add(1);
        let Page { rows, next } = page(request).await?;
        for row in rows {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            each(row);
        }
        if next.is_none() {
            return Ok(false);
        }
        request.after = next;
    }
}
