//! Many rows as arrays, one for each column, in the server's own binary form, so that a statement
//! has as many binds as columns, however many rows a batch writes.
//!
//! ```text
//! int, blob, text   20 bytes of head, then per cell: 4 bytes of length (-1: missing), the bytes
//! fixed blobs       one blob of all cells; the server cuts it by their length
//! names             each name once, and per row its place among them, from one
//! ```
//!
//! A cell is copied once, in the order of `Columns`. A fixed cell can be neither missing nor of
//! another length: it would shift every row after it (`are_of` sees to that).

use std::collections::BTreeMap;

use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, Postgres};
use sqlx::{Arguments as _, Type};

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
    /// What `UNNEST` takes apart is kept cell by cell and read again. What has one length needs
    /// none of it: its place is known, or counted where some are missing.
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
    ints: ColumnGroup,
    fixed: ColumnGroup,
    names: Vec<NameColumn>,
    next_name: usize,
    blobs: ColumnGroup,
    texts: ColumnGroup,
    count: usize,
    /// For how many rows a column has room from the start.
    expected: usize,
}

/// The columns of one kind, and which of them the next cell is of.
#[derive(Default)]
struct ColumnGroup {
    columns: Vec<Vec<u8>>,
    next: usize,
}

impl ColumnGroup {
    /// The column of the next cell, which is there. A new one gets this much room.
    fn next(&mut self, room: usize) -> Option<&mut Vec<u8>> {
        if self.columns.len() <= self.next {
            self.columns.push(Vec::with_capacity(room));
        }
        let column = self.columns.get_mut(self.next);
        self.next += 1;
        column
    }

    /// A cell of any length, which others are expected to have, too.
    fn put(&mut self, cell: &[u8], expected: usize) {
        let room = expected.saturating_mul(LENGTH_BYTES + cell.len()).min(ROOM_MAX);
        self.next(room).into_iter().for_each(|column| put(column, cell));
    }

    fn put_none(&mut self, expected: usize) {
        let column = self.next(expected.saturating_mul(LENGTH_BYTES));
        column.into_iter().for_each(|column| column.extend_from_slice(&(-1_i32).to_be_bytes()));
    }
}

/// A column of names.
#[derive(Default)]
struct NameColumn {
    /// The place of each name among all, counted from one.
    known: BTreeMap<Box<str>, i64>,
    /// All of them, in the order of their places.
    all: Vec<u8>,
    /// Place of each row's name; zero where a row has none.
    places: Vec<u8>,
}

impl NameColumn {
    fn place(&mut self, name: &str) -> i64 {
        if let Some(place) = self.known.get(name) {
            return *place;
        }
        // A batch has a bound.
        let place = i64::try_from(self.known.len() + 1).unwrap_or(i64::MAX);
        self.known.insert(name.into(), place);
        put(&mut self.all, name.as_bytes());
        place
    }
}

fn put(column: &mut Vec<u8>, cell: &[u8]) {
    // Nothing in here comes near two gigabytes: a batch has a bound.
    let length = i32::try_from(cell.len()).unwrap_or(i32::MAX);
    column.extend_from_slice(&length.to_be_bytes());
    column.extend_from_slice(cell);
}

/// Length and value of an integer at once: most cells are integers.
const fn int(value: i64) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
    [0, 0, 0, 8, a, b, c, d, e, f, g, h]
}

/// Bytes of the length before a cell, and before an array.
const LENGTH_BYTES: usize = size_of::<i32>();
/// Bytes before the cells of an array.
const HEAD_BYTES: usize = 20;
/// Bytes that a column gets at first, at most, where the length of its cells is a guess.
const ROOM_MAX: usize = 64 << 10;

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

    /// True where each row has all the cells that are counted by their places: one that is missing,
    /// or of another length, would shift all that come after it.
    pub(super) fn are_of(&self, columns: &Columns) -> bool {
        let cells = self.fixed.columns.iter().zip(columns.fixed);
        self.fixed.columns.len() <= columns.fixed.len()
            && self.names.len() <= columns.names.len()
            && self.names.iter().all(|names| names.places.len() == self.count * int(0).len())
            && cells.into_iter().all(|(cells, (_name, length))| cells.len() == self.count * length)
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
        let cell = int(value);
        let column = self.ints.next(self.expected.saturating_mul(cell.len()));
        // Length and value in one copy: most cells of a batch are integers.
        column.into_iter().for_each(|column| column.extend_from_slice(&cell));
        self
    }

    pub(super) fn no_int(&mut self) -> &mut Self {
        self.ints.put_none(self.expected);
        self
    }

    /// Puts a blob of the column's length.
    pub(super) fn fixed<const LENGTH: usize>(&mut self, bytes: &[u8; LENGTH]) -> &mut Self {
        let column = self.fixed.next(self.expected.saturating_mul(LENGTH_BYTES));
        column.into_iter().for_each(|column| column.extend_from_slice(bytes));
        self
    }

    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        self.opt_name(Some(name))
    }

    pub(super) fn opt_name(&mut self, name: Option<&str>) -> &mut Self {
        if self.names.len() <= self.next_name {
            let places = Vec::with_capacity(self.expected.saturating_mul(int(0).len()));
            self.names.push(NameColumn { places, ..NameColumn::default() });
        }
        if let Some(names) = self.names.get_mut(self.next_name) {
            let place = name.map_or(0, |name| names.place(name));
            names.places.extend_from_slice(&int(place));
        }
        self.next_name += 1;
        self
    }

    pub(super) fn blob(&mut self, bytes: &[u8]) -> &mut Self {
        self.blobs.put(bytes, self.expected);
        self
    }

    pub(super) fn no_blob(&mut self) -> &mut Self {
        self.blobs.put_none(self.expected);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.texts.put(text.as_bytes(), self.expected);
        self
    }

    pub(super) fn opt_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => {
                self.texts.put_none(self.expected);
                self
            }
        }
    }

    /// Number of arguments that these rows become, and their bytes at most.
    fn size(&self) -> (usize, usize) {
        let groups = [&self.ints, &self.fixed, &self.blobs, &self.texts];
        let columns = || {
            let names = self.names.iter().flat_map(|names| [&names.places, &names.all]);
            groups.iter().flat_map(|group| &group.columns).chain(names)
        };
        let (count, bytes) = (columns().count(), columns().map(Vec::len).sum::<usize>());
        (count, bytes.saturating_add(count.saturating_mul(LENGTH_BYTES + HEAD_BYTES)))
    }

    /// Adds what [`Columns::table`] names.
    fn add_to(self, arguments: &mut PgArguments) -> Result<(), BoxDynError> {
        let Self { ints, fixed, names, blobs, texts, count, .. } = self;
        let arrays = |group: ColumnGroup, element| {
            group.columns.into_iter().map(move |cells| Array { element, cells, count })
        };
        arrays(ints, Element::Int).try_for_each(|array| arguments.add(array))?;
        fixed.columns.into_iter().try_for_each(|cells| arguments.add(cells))?;
        for NameColumn { known, all, places } in names {
            arguments.add(Array { element: Element::Int, cells: places, count })?;
            arguments.add(Array { element: Element::Text, cells: all, count: known.len() })?;
        }
        let mut others = arrays(blobs, Element::Blob).chain(arrays(texts, Element::Text));
        others.try_for_each(|array| arguments.add(array))
    }
}

/// Arguments of a statement: a number perhaps, and its tables in their order.
pub(super) fn arguments(
    number: Option<i64>,
    tables: impl IntoIterator<Item = Rows>,
) -> Result<PgArguments, sqlx::Error> {
    let tables: Vec<Rows> = tables.into_iter().collect();
    let mut arguments = PgArguments::default();
    let number_bytes = LENGTH_BYTES + size_of::<i64>();
    let sizes = tables.iter().map(Rows::size);
    let (count, bytes) =
        sizes.fold((1, number_bytes), |(n, m), (count, bytes)| (n + count, m + bytes));
    // Once, so that no cell is copied again while the buffer grows.
    arguments.reserve(count, bytes);
    let numbers = number.into_iter().try_for_each(|number| arguments.add(number));
    let added = numbers
        .and_then(|()| tables.into_iter().try_for_each(|table| table.add_to(&mut arguments)));
    added.map(|()| arguments).map_err(sqlx::Error::Encode)
}

#[derive(Debug, Clone, Copy)]
enum Element {
    Int,
    Blob,
    Text,
}

impl Element {
    /// Identifier of the type in the server's catalogue (`pg_type.oid`).
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
            .no_int()
            .fixed(b"ab")
            .fixed(b"1")
            .name("x")
            .opt_name(None)
            .blob(b"")
            .opt_text(None);
        rows.row()
            .int(i64::MIN)
            .int(-1)
            .fixed(b"cd")
            .fixed(b"2")
            .name("")
            .name("y")
            .no_blob()
            .text("");
        rows.row().int(3).no_int().fixed(b"ef").fixed(b"3").name("x").opt_name(None).no_blob();
        rows.text("a'b");
        rows.row()
            .int(4)
            .int(0)
            .fixed(b"gh")
            .fixed(b"4")
            .name("z")
            .name("y")
            .no_blob()
            .opt_text(None);
        assert_eq!(rows.count(), 4);
        assert!(rows.are_of(&COLUMNS));
        let (sizes, given) = (rows.size(), COLUMNS.count());
        let sql = format!("SELECT n, m, f || g, of, by, b, t FROM {}", COLUMNS.table(1));
        let arguments = arguments(None, [rows]).unwrap();
        assert_eq!((sizes.0, given), (arguments.len(), arguments.len()));
        let mut connection = server().connect().await.unwrap();
        let found = sqlx::query_with(AssertSqlSafe(sql), arguments);
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
        let found = sqlx::query_with(AssertSqlSafe(sql), arguments(None, [rows]).unwrap());
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
        let found = sqlx::query_with(AssertSqlSafe(sql), arguments(None, [rows]).unwrap());
        let found = found.fetch_all(&mut connection).await.unwrap();
        let found: Vec<(Vec<u8>,)> =
            found.iter().map(|row| sqlx::FromRow::from_row(row).unwrap()).collect();
        assert_eq!(found, [(b"abc".to_vec(),), (b"def".to_vec(),)]);
    }
}
