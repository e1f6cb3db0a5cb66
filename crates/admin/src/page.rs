//! Lists: a page at a time, newest first.
//!
//! A cursor is opaque to callers: the number that a page ended with, and a digest of the list and
//! its filters, both in hexadecimal. It holds no secret, and is no permission: with other filters it
//! would skip rows silently, so it is refused there.

use holdfast_domain::listing::{Order, Page, PageCursor, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Code, Problem};

const LIMIT_MAX: u32 = 200;
const LIMIT: u32 = 50;

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
    pub(crate) fn list<R, T: From<R>>(&self, page: Page<R>) -> List<T> {
        self.list_as(page, T::from)
    }

    /// A page as an answer, each row by this view.
    pub(crate) fn list_as<R, T>(&self, page: Page<R>, view: impl FnMut(R) -> T) -> List<T> {
        let next_cursor = self.cursor(page.next);
        List {
            data: page.rows.into_iter().map(view).collect(),
            has_more: next_cursor.is_some(),
            next_cursor,
        }
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
