//! Many rows as arrays, one for each column, bound by the driver, so that a statement has as many
//! binds as columns, however many rows a batch writes.
//!
//! ```text
//! int               bigint[]         ($n)[at]
//! fixed blobs       bytea            one blob of all cells; the server cuts it by their length
//! names             bigint[] text[]  each name once, and per row its place among them, from one
//! blob, text        bytea[], text[]  UNNEST
//! ```
//!
//! The driver encodes them. Its binary form made here by hand took 5,600 to 6,300 instructions less
//! for a claim and its ending, some 3 % of what the gateway runs for a request: not worth lines that
//! know the protocol (2026-11-23, callgrind, `tests/bench/notes/2026-postgresql.md`).
//!
//! The server computes the place of fixed cells by itself. `UNNEST` copies each cell and reads it
//! again, so only blobs and texts, which have no fixed place, go through it: blobs by their place saved 4 % of
//! the server's instructions at 256 tasks, beside what integers and names saved (same notes).
//!
//! A fixed cell can be neither missing nor of another length: it would shift every row after it
//! (`are_of` sees to that in builds for development).

use std::collections::BTreeMap;

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

/// The columns of a statement's rows by their kinds; a row's cells are put in this order.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) ints: &'static [&'static str],
    /// Blobs that are never missing, each with its length.
    pub(super) fixed: &'static [(&'static str, usize)],
    /// Texts of which there are few, in many rows.
    pub(super) names: &'static [&'static str],
    pub(super) blobs: &'static [&'static str],
    pub(super) texts: &'static [&'static str],
}

impl Columns {
    pub(super) const NONE: Self =
        Self { ints: &[], fixed: &[], names: &[], blobs: &[], texts: &[] };

    /// Number of binds that these columns take; a column of names takes two, its places and its
    /// names.
    pub(super) const fn count(&self) -> usize {
        self.before_others() + self.blobs.len() + self.texts.len()
    }

    const fn before_others(&self) -> usize {
        self.ints.len() + self.fixed.len() + 2 * self.names.len()
    }

    /// The rows as a table `v`; the first bind is `$first`.
    ///
    /// Arrays for `UNNEST` are kept cell by cell and read again. Cells of one length need none of it: their place
    /// is known, or counted if some are missing.
    pub(super) fn table(&self, first: usize) -> String {
        let bind = |at: usize, kind: &str| format!("${}::{kind}", first + at);
        let ints = self.ints.iter().enumerate();
        let mut columns: Vec<String> =
            ints.map(|(at, name)| format!("({})[at] AS {name}", bind(at, "bigint[]"))).collect();
        columns.extend(self.fixed.iter().enumerate().map(|(at, (name, length))| {
            let cells = bind(self.ints.len() + at, "bytea");
            let before = *length - 1;
            format!("substr({cells}, (at * {length} - {before})::int, {length}) AS {name}")
        }));
        columns.extend(self.names.iter().enumerate().map(|(nth, name)| {
            let before = self.ints.len() + self.fixed.len() + 2 * nth;
            let (places, all) = (bind(before, "bigint[]"), bind(before + 1, "text[]"));
            format!("({all})[({places})[at]] AS {name}")
        }));
        let others = self.blobs.iter().map(|name| (*name, "bytea[]"));
        let others = others.chain(self.texts.iter().map(|name| (*name, "text[]")));
        let mut binds = Vec::new();
        let mut names = Vec::new();
        for (at, (name, kind)) in others.enumerate() {
            columns.push(name.to_owned());
            binds.push(bind(self.before_others() + at, kind));
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
/// blobs of one length, its names, its other blobs and its texts.
#[derive(Default)]
pub(super) struct Rows {
    ints: ColumnGroup<Option<i64>>,
    fixed: ColumnGroup<u8>,
    names: Vec<NameColumn>,
    next_name: usize,
    blobs: ColumnGroup<Option<Vec<u8>>>,
    texts: ColumnGroup<Option<String>>,
    count: usize,
    /// For how many rows a column has room from the start.
    expected: usize,
}

/// The columns of one kind, and which of them the next cell is of.
struct ColumnGroup<T> {
    columns: Vec<Vec<T>>,
    next: usize,
}

impl<T> Default for ColumnGroup<T> {
    fn default() -> Self {
        Self { columns: Vec::new(), next: 0 }
    }
}

impl<T> ColumnGroup<T> {
    /// The column of the next cell, which is there. A new one gets this much room.
    fn next(&mut self, room: usize) -> Option<&mut Vec<T>> {
        if self.columns.len() <= self.next {
            // Once for the batch: cells are copied here, and into the driver's buffer, which grows.
            self.columns.push(Vec::with_capacity(room));
        }
        let column = self.columns.get_mut(self.next);
        self.next += 1;
        column
    }

    fn put(&mut self, cell: T, room: usize) {
        if let Some(column) = self.next(room) {
            column.push(cell);
        }
    }
}

/// A column of names.
#[derive(Default)]
struct NameColumn {
    /// Each name's place, counted from one.
    known: BTreeMap<String, i64>,
    /// Place of each row's name; zero, where no array has an element, for a row that has none.
    places: Vec<i64>,
}

impl Rows {
    /// Empty rows, with room for so many in each column.
    pub(super) fn with_room(expected: usize) -> Self {
        Self { expected, ..Self::default() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// True if each row has all the cells that are counted by their places: one that is missing,
    /// or of another length, would shift all that come after it.
    pub(super) fn are_of(&self, columns: &Columns) -> bool {
        let fixed = self.fixed.columns.iter().zip(columns.fixed);
        self.ints.columns.iter().all(|cells| cells.len() == self.count)
            && self.fixed.columns.len() <= columns.fixed.len()
            && self.names.len() <= columns.names.len()
            && self.names.iter().all(|names| names.places.len() == self.count)
            && fixed.into_iter().all(|(cells, (_name, length))| cells.len() == self.count * length)
    }

    pub(super) const fn row(&mut self) -> &mut Self {
        self.count += 1;
        self.ints.next = 0;
        self.fixed.next = 0;
        self.next_name = 0;
        self.blobs.next = 0;
        self.texts.next = 0;
        self
    }

    pub(super) fn int(&mut self, value: i64) -> &mut Self {
        self.opt_int(Some(value))
    }

    pub(super) fn opt_int(&mut self, value: Option<i64>) -> &mut Self {
        self.ints.put(value, self.expected);
        self
    }

    /// Puts a blob of the column's length.
    pub(super) fn fixed<const LENGTH: usize>(&mut self, bytes: &[u8; LENGTH]) -> &mut Self {
        let column = self.fixed.next(self.expected.saturating_mul(LENGTH));
        column.into_iter().for_each(|column| column.extend_from_slice(bytes));
        self
    }

    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        self.opt_name(Some(name))
    }

    pub(super) fn opt_name(&mut self, name: Option<&str>) -> &mut Self {
        if self.names.len() <= self.next_name {
            let places = Vec::with_capacity(self.expected);
            self.names.push(NameColumn { places, ..NameColumn::default() });
        }
        if let Some(names) = self.names.get_mut(self.next_name) {
            // An array of the server begins at one: what is at zero is missing, not an error.
            let place = name.map_or(0, |name| names.place(name));
            names.places.push(place);
        }
        self.next_name += 1;
        self
    }

    pub(super) fn opt_blob(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        self.blobs.put(bytes.map(<[u8]>::to_vec), self.expected);
        self
    }

    pub(super) fn text(&mut self, text: impl Into<String>) -> &mut Self {
        self.texts.put(Some(text.into()), self.expected);
        self
    }

    #[cfg(test)]
    fn no_text(&mut self) -> &mut Self {
        self.texts.put(None, self.expected);
        self
    }

    /// Binds what [`Columns::table`] names, in its order.
    pub(super) fn bind<'q>(
        self,
        mut query: Query<'q, Postgres, PgArguments>,
    ) -> Query<'q, Postgres, PgArguments> {
        let Self { ints, fixed, names, blobs, texts, .. } = self;
        // The order of `Columns::table`, which counts its binds kind by kind: nothing else joins them.
        for cells in ints.columns {
            query = query.bind(cells);
        }
        for cells in fixed.columns {
            query = query.bind(cells);
        }
        for NameColumn { known, places } in names {
            let mut all: Vec<(String, i64)> = known.into_iter().collect();
            // Places were given in the order of arrival, the map is in that of the names.
            all.sort_unstable_by_key(|(_name, place)| *place);
            let all: Vec<String> = all.into_iter().map(|(name, _place)| name).collect();
            query = query.bind(places).bind(all);
        }
        for cells in blobs.columns {
            query = query.bind(cells);
        }
        for cells in texts.columns {
            query = query.bind(cells);
        }
        query
    }
}

impl NameColumn {
    fn place(&mut self, name: &str) -> i64 {
        if let Some(place) = self.known.get(name) {
            return *place;
        }
        // A batch has a bound.
        let place = i64::try_from(self.known.len() + 1).unwrap_or(i64::MAX);
        self.known.insert(name.to_owned(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, ConnectOptions as _};

    use super::*;
    use crate::postgres::connect::tests::server;

    /// The cells of a row.
    type Cells =
        (i64, Option<i64>, Vec<u8>, String, Option<String>, Option<Vec<u8>>, Option<String>);

    #[tokio::test]
    async fn postgres_cells_that_are_missing_arrive_beside_the_others() {
        const COLUMNS: Columns = Columns {
            ints: &["n", "m"],
            fixed: &[("f", 2), ("g", 1)],
            names: &["of", "by"],
            blobs: &["b"],
            texts: &["t"],
        };
        let expected: [Cells; 4] = [
            (1, None, b"ab1".into(), "x".to_owned(), None, Some(Vec::new()), None),
            (
                i64::MIN,
                Some(-1),
                b"cd2".into(),
                String::new(),
                Some("y".to_owned()),
                None,
                Some(String::new()),
            ),
            (3, None, b"ef3".into(), "x".to_owned(), None, None, Some("a'b".to_owned())),
            (4, Some(0), b"gh4".into(), "z".to_owned(), Some("y".to_owned()), None, None),
        ];
        let mut rows = Rows::with_room(2);
        rows.row()
            .int(1)
            .opt_int(None)
            .fixed(b"ab")
            .fixed(b"1")
            .name("x")
            .opt_name(None)
            .opt_blob(Some(b""))
            .no_text();
        rows.row()
            .int(i64::MIN)
            .int(-1)
            .fixed(b"cd")
            .fixed(b"2")
            .name("")
            .name("y")
            .opt_blob(None)
            .text("");
        rows.row()
            .int(3)
            .opt_int(None)
            .fixed(b"ef")
            .fixed(b"3")
            .name("x")
            .opt_name(None)
            .opt_blob(None);
        rows.text("a'b");
        rows.row()
            .int(4)
            .int(0)
            .fixed(b"gh")
            .fixed(b"4")
            .name("z")
            .name("y")
            .opt_blob(None)
            .no_text();
        assert_eq!(rows.count(), 4);
        assert!(rows.are_of(&COLUMNS));
        let sql = format!("SELECT n, m, f || g, of, by, b, t FROM {}", COLUMNS.table(1));
        let mut connection = server().connect().await.unwrap();
        let found = rows.bind(sqlx::query(AssertSqlSafe(sql)));
        let found = found.fetch_all(&mut connection).await.unwrap();
        let found: Vec<Cells> =
            found.iter().map(|row| sqlx::FromRow::from_row(row).unwrap()).collect();
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn postgres_names_that_no_row_has_are_missing() {
        const COLUMNS: Columns = Columns { ints: &["n"], names: &["of"], ..Columns::NONE };
        let mut rows = Rows::default();
        rows.row().int(1).opt_name(None);
        rows.row().int(2).opt_name(None);
        let sql = format!("SELECT n, of FROM {}", COLUMNS.table(1));
        let mut connection = server().connect().await.unwrap();
        let found = rows.bind(sqlx::query(AssertSqlSafe(sql)));
        let found = found.fetch_all(&mut connection).await.unwrap();
        let found: Vec<(i64, Option<String>)> =
            found.iter().map(|row| sqlx::FromRow::from_row(row).unwrap()).collect();
        assert_eq!(found, [(1, None), (2, None)]);
    }

    #[tokio::test]
    async fn postgres_rows_of_nothing_but_one_length_are_all_there() {
        const COLUMNS: Columns = Columns { fixed: &[("f", 3)], ..Columns::NONE };
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
