//! Rows that are read and written as their entity lists their columns.

use sea_orm::{Statement, Value};

use super::{BadRow, Cells};
use crate::schema::Dialect;

/// A value that is read of the columns of a row.
pub(crate) trait FromCells: Sized {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow>;
}

/// Names and values of columns.
pub(crate) type Columns = Vec<(&'static str, Value)>;

/// A value that is a row of a table, by the macro `row!` of [`entity`](crate::rows::entity).
pub(crate) trait Row: FromCells {
    const TABLE: &'static str;
    /// The columns that [`FromCells::from_cells`] reads, under the alias of the table.
    const COLUMNS: &'static str;

    /// The columns that are set once, the key of the row first, and those that an UPDATE sets.
    fn columns(&self) -> [Columns; 2];

    fn insert(&self, dialect: Dialect) -> Statement {
        Self::insert_all(dialect, std::slice::from_ref(self))
    }

    /// Statement that inserts these rows.
    fn insert_all(dialect: Dialect, rows: &[Self]) -> Statement {
        let rows: Vec<Columns> = rows.iter().map(|row| row.columns().concat()).collect();
        let names: Vec<_> = rows.iter().take(1).flatten().map(|(name, _)| *name).collect();
        let places = |row: usize| {
            let first = row.saturating_mul(names.len());
            let places = (1..=names.len()).map(|at| format!("${}", first.saturating_add(at)));
            format!("({})", places.collect::<Vec<_>>().join(", "))
        };
        let places: Vec<_> = (0..rows.len()).map(places).collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES {}",
            Self::TABLE,
            names.join(", "),
            places.join(", ")
        );
        let values = rows.into_iter().flatten().map(|(_, value)| value);
        Statement::from_sql_and_values(dialect.backend(), sql, values)
    }

    /// Statement that updates the row of this key.
    fn update(&self, dialect: Dialect) -> Statement {
        let [made, set] = self.columns();
        let columns: Columns = made.into_iter().take(1).chain(set).collect();
        let places = columns.iter().enumerate();
        let mut places =
            places.map(|(at, (name, _))| format!("{name} = ${}", at.saturating_add(1)));
        let key = places.next().into_iter().collect::<String>();
        let places = places.collect::<Vec<_>>().join(", ");
        let sql = format!("UPDATE {} SET {places} WHERE {key}", Self::TABLE);
        let values = columns.into_iter().map(|(_, value)| value);
        Statement::from_sql_and_values(dialect.backend(), sql, values)
    }
}
