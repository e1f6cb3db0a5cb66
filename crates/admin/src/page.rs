//! Lists: a page at a time, newest first.
//!
//! A cursor is opaque to callers: the number that a page ended with, and a digest of the list and
//! its filters, both in hexadecimal. It holds no secret, and is no permission: with other filters it
//! would skip rows silently, so it is refused there.
//!
//! A page is bounded in bytes as well as in rows: 200 rows of the largest allow-lists would be many megabytes. It
//! ends early then, with the cursor of its last row, and has one row at least.

use holdfast_domain::listing::{Order, Page, PageCursor, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::error::{Code, Problem};

const LIMIT_MAX: u32 = 200;
const LIMIT: u32 = 50;
/// Bytes of the rows of a page: with its frame an answer is 1 MiB at most, unless its one row is larger.
const BYTES_MAX: usize = (1 << 20) - 256;

/// A list and its filters, as far as cursors are bound to them.
pub(crate) struct ListId([u8; 8]);

impl ListId {
    /// The list of this name with these filters.
    pub(crate) fn new(name: &str, filters: &impl Serialize) -> Self {
        let filters = serde_json::to_vec(filters).unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(name.as_bytes()).update(b"\n").update(&filters);
        let mut digest = [0; 8];
        hasher.finalize_xof().fill(&mut digest);
        Self(digest)
    }

    /// The page that a query asks for.
    pub(crate) fn request(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<PageRequest, Problem> {
        let limit = limit.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            let message = format!("A page has 1 to {LIMIT_MAX} rows.");
            return Err(Problem::invalid("limit", message));
        }
        let after = cursor.map(|cursor| self.read(cursor)).transpose()?;
        Ok(PageRequest { order: Order::Newest, after, limit })
    }

    fn read(&self, cursor: &str) -> Result<PageCursor, Problem> {
        let number = cursor.get(..16).and_then(|number| u64::from_str_radix(number, 16).ok());
        let read = number.map(|number| PageCursor(i64::from_be_bytes(number.to_be_bytes())));
        // Written again and compared: a cursor has one spelling.
        let known = read.filter(|read| self.write(*read) == cursor);
        known.ok_or_else(|| Problem::new(Code::InvalidCursor))
    }

    fn write(&self, PageCursor(number): PageCursor) -> String {
        let number = u64::from_be_bytes(number.to_be_bytes());
        format!("{number:016x}{:016x}", u64::from_be_bytes(self.0))
    }

    /// The cursor of the next page, where there is one.
    pub(crate) fn cursor(&self, next: Option<PageCursor>) -> Option<String> {
        next.map(|next| self.write(next))
    }

    /// A page as an answer.
    pub(crate) async fn list<R, T>(self, page: Page<R>) -> Result<Answer<List<T>>, Problem>
    where
        R: Send + 'static,
        T: From<R> + Serialize + Send + 'static,
    {
        self.list_as(page, T::from).await
    }

    /// A page as an answer, each row by this view. It ends before it is larger than [`BYTES_MAX`].
    pub(crate) async fn list_as<R, T>(
        self,
        page: Page<R>,
        view: impl FnMut(R) -> T + Send + 'static,
    ) -> Result<Answer<List<T>>, Problem>
    where
        R: Send + 'static,
        T: Serialize + Send + 'static,
    {
        Answer::large(move || {
            let page = page.map(view).within(BYTES_MAX, rendered_len);
            let next_cursor = self.cursor(page.next);
            List { data: page.rows, has_more: next_cursor.is_some(), next_cursor }
        })
        .await
    }
}

/// Bytes that a row takes in an answer, with the comma after it.
fn rendered_len(row: &impl Serialize) -> usize {
    let mut counted = ByteCount(1);
    match serde_json::to_writer(&mut counted, row) {
        Ok(()) => counted.0,
        // The answer fails by the same row, and says so there.
        Err(_unrenderable) => 0,
    }
}

/// A writer that keeps the number of bytes alone.
struct ByteCount(usize);

impl std::io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Page of a list, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct List<T> {
    /// Rows. A page may have fewer than its limit, or none, and a next one nevertheless.
    pub(crate) data: Vec<T>,
    /// True where there may be more.
    pub(crate) has_more: bool,
    /// Cursor of the next page.
    pub(crate) next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A list that is whole.
    pub(crate) const fn whole(data: Vec<T>) -> Self {
        Self { data, has_more: false, next_cursor: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_list_and_its_filters() {
        let list = ListId::new("wallets", &None::<&str>);
        for number in [0, 1, i64::MAX, -1] {
            let cursor = list.write(PageCursor(number));
            let request = list.request(None, Some(&cursor)).unwrap();
            assert_eq!(request.after, Some(PageCursor(number)));
            for other in [ListId::new("api_keys", &None::<&str>), ListId::new("wallets", &"x")] {
                let refused = other.request(None, Some(&cursor)).unwrap_err();
                assert_eq!(refused.code(), Code::InvalidCursor);
            }
            assert!(list.request(None, Some(&format!("{cursor}0"))).is_err());
        }
        for bad in ["", "7", "zz", "0000000000000001"] {
            assert!(list.request(None, Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page_has_1_to_200_rows() {
        let list = ListId::new("wallets", &());
        assert_eq!(list.request(None, None).unwrap().limit, 50);
        for (limit, good) in [(0, false), (1, true), (200, true), (201, false)] {
            assert_eq!(list.request(Some(limit), None).is_ok(), good, "{limit}");
        }
    }
}
