//! Many rows as arrays, one for each column, in the server's own binary form: a cell is copied once, and
//! may be missing. Blobs of one length are one blob, as long as all of them.

use sqlx::Type;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, Postgres};
use sqlx::query::Query;

/// The columns of a statement's rows by their kinds; a row's cells are put in this order.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) ints: &'static [&'static str],
    /// Blobs that are never missing, each with its length.
    pub(super) fixed: &'static [(&'static str, usize)],
    pub(super) blobs: &'static [&'static str],
    pub(super) texts: &'static [&'static str],
}

impl Columns {
    pub(super) const fn count(&self) -> usize {
        self.ints.len() + self.fixed.len() + self.blobs.len() + self.texts.len()
    }

    /// The rows as a table `v`; the first bind is `$first`.
    ///
    /// What `UNNEST` takes apart is kept cell by cell and read again. What has one length needs none of it:
    /// its place is known, or counted where some are missing.
    pub(super) fn table(&self, first: usize) -> String {
        let bind = |at: usize, kind: &str| format!("${}::{kind}", first + at);
        let ints = self.ints.iter().enumerate();
        let mut columns: Vec<String> =
            ints.map(|(at, name)| format!("({})[at] AS {name}", bind(at, "bigint[]"))).collect();
        columns.extend(self.fixed.iter().enumerate().map(|(at, (name, length))| {
            let cells = bind(self.ints.len() + at, "bytea");
            format!("substr({cells}, ((at - 1) * {length} + 1)::int, {length}) AS {name}")
        }));
        let others = self.blobs.iter().map(|name| (*name, "bytea[]"));
        let others = others.chain(self.texts.iter().map(|name| (*name, "text[]")));
        let mut binds = Vec::new();
        let mut names = Vec::new();
        for (at, (name, kind)) in others.enumerate() {
            columns.push(name.to_owned());
            binds.push(bind(self.ints.len() + self.fixed.len() + at, kind));
            names.push(name);
        }
        let rows = match (names.as_slice(), self.ints, self.fixed) {
            ([], [], [(_name, length), ..]) => {
                format!("generate_series(1, length({}) / {length}) AS rows(at)", bind(0, "bytea"))
            }
            ([], ..) => format!("generate_subscripts({}, 1) AS rows(at)", bind(0, "bigint[]")),
            _ => {
                let (binds, names) = (binds.join(", "), names.join(", "));
                format!("UNNEST({binds}) WITH ORDINALITY AS rows({names}, at)")
            }
        };
        format!("(SELECT {} FROM {rows}) AS v", columns.join(", "))
    }
}

/// Rows in the making. The integers of a row are put in the order of their columns, and so are its
/// blobs of one length, its other blobs and its texts.
#[derive(Default)]
pub(super) struct Rows {
    ints: Group,
    fixed: Group,
    blobs: Group,
    texts: Group,
    count: usize,
}

/// The columns of one kind, and which of them the next cell is of.
#[derive(Default)]
struct Group {
    columns: Vec<Vec<u8>>,
    next: usize,
}

impl Group {
    /// The column of the next cell, which is there.
    fn next(&mut self) -> Option<&mut Vec<u8>> {
        if self.columns.len() <= self.next {
            self.columns.push(Vec::new());
        }
        let column = self.columns.get_mut(self.next);
        self.next += 1;
        column
    }

    fn put(&mut self, cell: Option<&[u8]>) {
        let Some(column) = self.next() else { return };
        match cell {
            // Nothing in here comes near two gigabytes: a batch has a bound.
            Some(bytes) => {
                let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
                column.extend_from_slice(&length.to_be_bytes());
                column.extend_from_slice(bytes);
            }
            None => column.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
}

impl Rows {
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Whether these are rows of such columns: a cell of another length would shift all that come after it.
    pub(super) fn are_of(&self, columns: &Columns) -> bool {
        let cells = self.fixed.columns.iter().zip(columns.fixed);
        self.fixed.columns.len() <= columns.fixed.len()
            && cells.into_iter().all(|(cells, (_name, length))| cells.len() == self.count * length)
    }

    pub(super) const fn row(&mut self) -> &mut Self {
        self.count += 1;
        self.ints.next = 0;
        self.fixed.next = 0;
        self.blobs.next = 0;
        self.texts.next = 0;
        self
    }

    pub(super) fn int(&mut self, value: i64) -> &mut Self {
        self.ints.put(Some(&value.to_be_bytes()));
        self
    }

    pub(super) fn no_int(&mut self) -> &mut Self {
        self.ints.put(None);
        self
    }

    /// Of the length that the column says.
    pub(super) fn fixed<const LENGTH: usize>(&mut self, bytes: &[u8; LENGTH]) -> &mut Self {
        self.fixed.next().into_iter().for_each(|column| column.extend_from_slice(bytes));
        self
    }

    pub(super) fn blob(&mut self, bytes: &[u8]) -> &mut Self {
        self.blobs.put(Some(bytes));
        self
    }

    pub(super) fn no_blob(&mut self) -> &mut Self {
        self.blobs.put(None);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.texts.put(Some(text.as_bytes()));
        self
    }

    pub(super) fn opt_text(&mut self, text: Option<&str>) -> &mut Self {
        self.texts.put(text.map(str::as_bytes));
        self
    }

    /// Binds what [`Columns::table`] names.
    pub(super) fn bind<'q>(
        self,
        mut query: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let Self { ints, fixed, blobs, texts, count } = self;
        let arrays = |group: Group, element| {
            group.columns.into_iter().map(move |cells| Array { element, cells, count })
        };
        query = arrays(ints, Element::Int).fold(query, Query::bind);
        query = fixed.columns.into_iter().fold(query, Query::bind);
        let others = arrays(blobs, Element::Blob).chain(arrays(texts, Element::Text));
        others.fold(query, Query::bind)
    }
}

#[derive(Debug, Clone, Copy)]
enum Element {
    Int,
    Blob,
    Text,
}

impl Element {
    /// What the server calls the type.
    const fn oid(self) -> u32 {
        match self {
            Self::Int => 20,
            Self::Blob => 17,
            Self::Text => 25,
        }
    }

    fn array(self) -> PgTypeInfo {
        match self {
            Self::Int => <Vec<i64> as Type<Postgres>>::type_info(),
            Self::Blob => <Vec<Vec<u8>> as Type<Postgres>>::type_info(),
            Self::Text => <Vec<String> as Type<Postgres>>::type_info(),
        }
    }
}

/// An array in the server's binary form, without its head. What it holds is not shown.
struct Array {
    element: Element,
    cells: Vec<u8>,
    count: usize,
}

impl Type<Postgres> for Array {
    fn type_info() -> PgTypeInfo {
        Element::Int.array()
    }
}

impl Encode<'_, Postgres> for Array {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let count = i32::try_from(self.count)?;
        // One dimension, perhaps with missing elements, counted from one.
        for number in [1, 1] {
            buffer.extend_from_slice(&i32::to_be_bytes(number));
        }
        buffer.extend_from_slice(&self.element.oid().to_be_bytes());
        for number in [count, 1] {
            buffer.extend_from_slice(&number.to_be_bytes());
        }
        buffer.extend_from_slice(&self.cells);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(self.element.array())
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, ConnectOptions as _};

    use super::*;
    use crate::postgres::connect::tests::server;

    /// The cells of a row.
    type Cells = (i64, Option<i64>, Vec<u8>, Option<Vec<u8>>, Option<String>);

    #[tokio::test]
    async fn postgres_cells_that_are_missing_arrive_beside_the_others() {
        const COLUMNS: Columns = Columns {
            ints: &["n", "m"],
            fixed: &[("f", 2), ("g", 1)],
            blobs: &["b"],
            texts: &["t"],
        };
        let mut rows = Rows::default();
        rows.row().int(1).no_int().fixed(b"ab").fixed(b"1").blob(b"").opt_text(None);
        rows.row().int(i64::MIN).int(-1).fixed(b"cd").fixed(b"2").no_blob().text("");
        rows.row().int(3).no_int().fixed(b"ef").fixed(b"3").no_blob().opt_text(Some("a'b"));
        let columns = [&rows.ints, &rows.fixed, &rows.blobs, &rows.texts];
        let columns = columns.map(|group| group.columns.len());
        assert_eq!((columns, rows.count()), ([2, 2, 1, 1], 3));
        let sql = format!("SELECT n, m, f || g, b, t FROM {}", COLUMNS.table(1));
        let mut connection = server().connect().await.unwrap();
        let found = rows.bind(sqlx::query(AssertSqlSafe(sql)));
        let found = found.fetch_all(&mut connection).await.unwrap();
        let found: Vec<Cells> =
            found.iter().map(|row| sqlx::FromRow::from_row(row).unwrap()).collect();
        let expected: [Cells; 3] = [
            (1, None, b"ab1".into(), Some(Vec::new()), None),
            (i64::MIN, Some(-1), b"cd2".into(), None, Some(String::new())),
            (3, None, b"ef3".into(), None, Some("a'b".to_owned())),
        ];
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn postgres_rows_of_nothing_but_one_length_are_all_there() {
        const COLUMNS: Columns = Columns { ints: &[], fixed: &[("f", 3)], blobs: &[], texts: &[] };
        let mut rows = Rows::default();
        rows.row().fixed(b"abc");
        rows.row().fixed(b"def");
        assert!(rows.are_of(&COLUMNS));
        let mut longer = Rows::default();
        longer.row().fixed(b"abcd");
        assert!(!longer.are_of(&COLUMNS));
        let sql = format!("SELECT f FROM {}", COLUMNS.table(1));
        let mut connection = server().connect().await.unwrap();
        let found = rows.bind(sqlx::query(AssertSqlSafe(sql)));
        let found = found.fetch_all(&mut connection).await.unwrap();
        let found: Vec<(Vec<u8>,)> =
            found.iter().map(|row| sqlx::FromRow::from_row(row).unwrap()).collect();
        assert_eq!(found, [(b"abc".to_vec(),), (b"def".to_vec(),)]);
    }
}
