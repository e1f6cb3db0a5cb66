//! Lists: a page at a time, newest first.
//!
//! A cursor is sealed and opaque to callers: it is bound to the list, its filters and the reach of its
//! reader ([`PagedList`]).
//!
//! A page is bounded in bytes as well as in rows: 200 rows of the largest allow-lists would be many megabytes. It
//! ends early then, with the cursor of its last row, and has one row at least.

use axum::extract::FromRequestParts;
use form_urlencoded::Serializer;
use holdfast_accounts::PagedList;
use holdfast_domain::admin::listing::{Page, PageCursor, PageRequest};
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::error::{Code, Problem};
use crate::request::{Caller, read_query};

// The command line reads pages of this length. Pages of large rows end earlier, at `BYTES_MAX`.
const LIMIT_MAX: u32 = 200;
const LIMIT: u32 = 50;
/// Bytes of the rows of a page: with its frame an answer is 1 MiB at most, unless its one row is larger.
const BYTES_MAX: usize = (1 << 20) - 256;

/// Page of a list: its length, and its start.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Rows on the page: 1 to 200, 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    pub(crate) limit: Option<u32>,
    /// `next_cursor` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]{48}$")]
    pub(crate) cursor: Option<String>,
}

impl PageQuery {
    const NAMES: [&str; 2] = ["limit", "cursor"];
}

/// Filters of a list that has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFilters {}

/// Parameters of a list: its filters, and its page.
#[derive(Debug)]
pub(crate) struct ListParams<T>(pub(crate) T, pub(crate) PageQuery);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for ListParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Not flattened: serde reads no numbers from the texts of flattened members.
        let (mut filters, mut page) =
            (Serializer::new(String::new()), Serializer::new(String::new()));
        for (name, value) in
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
        {
            let part = if PageQuery::NAMES.contains(&&*name) { &mut page } else { &mut filters };
            part.append_pair(&name, &value);
        }
        Ok(Self(read_query(&filters.finish())?, read_query(&page.finish())?))
    }
}

/// A list under filters, with the cursors of its pages.
pub(crate) struct ListPages(PagedList);

impl ListPages {
    /// The list of this name under these filters, for this reader.
    pub(crate) fn new(
        caller: &Caller,
        name: &str,
        filters: &impl Serialize,
    ) -> Result<Self, Problem> {
        let filters = serde_json::to_vec(filters).map_err(|error| {
            tracing::error!(%error, list = name, "the filters of a list were not written");
            Problem::new(Code::InternalError)
        })?;
        Ok(Self(caller.accounts().paged_list(&caller.principal, name, &filters)))
    }

    /// The page after this cursor, or the first one without a cursor.
    pub(crate) fn request(&self, page: &PageQuery) -> Result<PageRequest, Problem> {
        let limit = page.limit.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            let message = format!("A page has 1 to {LIMIT_MAX} rows.");
            return Err(Problem::invalid("limit", message));
        }
        self.0
            .request(limit, page.cursor.as_deref())
            .map_err(|_bad| Problem::new(Code::InvalidCursor))
    }

    /// The cursor of the next page, if there is one.
    pub(crate) fn cursor(&self, next: Option<PageCursor>) -> Result<Option<String>, Problem> {
        Ok(next.map(|next| self.0.cursor(next)).transpose()?)
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
        Answer::try_large(move || {
            // Cut before the cursor is sealed, which names the last row that is left. Rows beyond
            // it come with the next page; a cursor of the whole page would skip them.
            let page = page.map(view).within(BYTES_MAX, rendered_len);
            let next_cursor = self.cursor(page.next)?;
            Ok(List { data: page.rows, has_more: next_cursor.is_some(), next_cursor })
        })
        .await
    }
}

/// Bytes that a row takes in an answer, with the comma after it.
fn rendered_len(row: &impl Serialize) -> usize {
    let mut counted = ByteCount(1);
    match serde_json::to_writer(&mut counted, row) {
        Ok(()) => counted.0,
        // The answer fails by the same row, and has its error.
        Err(_unrenderable) => 0,
    }
}

/// Writer that keeps the number of its bytes only.
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
    /// True if there may be more.
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
