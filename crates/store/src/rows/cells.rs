//! Cells of a row, read one after the other: the same for a row of the readers and for one that SQLite's writer
//! read on its own thread.
//!
//! Cells have places, not names, so that the writer never compares texts in its loop. A value that is not valid in
//! a cell is a [`BadRow`] with the place, and never with the value: a value may be private.

use holdfast_domain::ports::Cause;
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{Micros, Timestamp};
use sea_orm::QueryResult;

use super::Cell;
use super::cell::Primitive;

/// A row without a valid value in a column: another program wrote it, or the code is wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRow {
    #[error("column {0} of a row cannot be read")]
    Column(usize, #[source] Cause),
    #[error("column {0} of a row has an invalid value")]
    Value(usize),
}

/// Reads the columns of a row one after the other.
#[derive(Debug)]
pub(crate) struct Cells<'r> {
    row: RowSource<'r>,
    /// Place of the next column.
    pub(super) next: usize,
}

/// Source of a row.
#[derive(Debug, Clone, Copy)]
enum RowSource<'r> {
    Readers(&'r QueryResult),
    #[cfg(feature = "sqlite")]
    Writer(&'r rusqlite::Row<'r>),
}

impl<'r> Cells<'r> {
    pub(crate) const fn new(row: &'r QueryResult) -> Self {
        Self { row: RowSource::Readers(row), next: 0 }
    }

    /// The columns of a row that SQLite's writer has read.
    #[cfg(feature = "sqlite")]
    pub(crate) const fn written(row: &'r rusqlite::Row<'r>) -> Self {
        Self { row: RowSource::Writer(row), next: 0 }
    }

    /// Reads the next column.
    pub(crate) fn get<C: Cell>(&mut self) -> Result<C, BadRow> {
        self.parse(C::from_raw)
    }

    pub(super) fn raw<T: Primitive>(&mut self) -> Result<T, BadRow> {
        let at = self.next;
        self.next = at.saturating_add(1);
        match self.row {
            RowSource::Readers(row) => row.try_get_by_index(at).map_err(|error| bad(at, error)),
            #[cfg(feature = "sqlite")]
            RowSource::Writer(row) => row.get(at).map_err(|error| bad(at, error)),
        }
    }

    /// Parses the next column by `read`; `None` there means that it cannot stand there.
    pub(crate) fn parse<T: Primitive, U>(
        &mut self,
        read: impl FnOnce(T) -> Option<U>,
    ) -> Result<U, BadRow> {
        let value = self.raw()?;
        read(value).ok_or(BadRow::Value(self.next.saturating_sub(1)))
    }

    /// Passes over columns that the row has in any case.
    pub(crate) const fn skip(&mut self, columns: usize) {
        self.next = self.next.saturating_add(columns);
    }

    /// True if the next column is null: an outer join found no row.
    pub(crate) fn is_absent(&self) -> Result<bool, BadRow> {
        let at = self.next;
        match self.row {
            RowSource::Readers(row) => {
                let value = row.try_get_by_index::<Option<Vec<u8>>>(at);
                Ok(value.map_err(|error| bad(at, error))?.is_none())
            }
            #[cfg(feature = "sqlite")]
            RowSource::Writer(row) => {
                let value = row.get_ref(at).map_err(|error| bad(at, error))?;
                Ok(value == rusqlite::types::ValueRef::Null)
            }
        }
    }

    pub(crate) fn int(&mut self) -> Result<i64, BadRow> {
        self.raw()
    }

    /// Reads a sum in two halves of 64 bits: the upper ones, then the lower 32 bits of each addend.
    pub(crate) fn wide(&mut self) -> Result<i128, BadRow> {
        let (high, low) = (self.int()?, self.int()?);
        Ok((i128::from(high) << 32).saturating_add(low.into()))
    }

    pub(crate) fn opt_int(&mut self) -> Result<Option<i64>, BadRow> {
        self.raw()
    }

    pub(crate) fn small<T: TryFrom<i64>>(&mut self) -> Result<T, BadRow> {
        self.parse(|value: i64| T::try_from(value).ok())
    }

    pub(crate) fn text(&mut self) -> Result<String, BadRow> {
        self.raw()
    }

    pub(crate) fn opt_text(&mut self) -> Result<Option<String>, BadRow> {
        self.raw()
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], BadRow> {
        self.parse(|value: Vec<u8>| value.try_into().ok())
    }

    pub(crate) fn opt_bytes<const N: usize>(&mut self) -> Result<Option<[u8; N]>, BadRow> {
        self.parse(|value: Option<Vec<u8>>| value.map(TryInto::try_into).transpose().ok())
    }

    pub(crate) fn micros(&mut self) -> Result<Micros, BadRow> {
        self.int().map(Micros::new)
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp, BadRow> {
        self.int().map(Timestamp::from_micros)
    }

    pub(crate) fn opt_timestamp(&mut self) -> Result<Option<Timestamp>, BadRow> {
        Ok(self.opt_int()?.map(Timestamp::from_micros))
    }

    /// Nine counts; `None` if the row has none.
    pub(super) fn counts(&mut self) -> Result<Option<[u64; MeterKind::COUNT]>, BadRow> {
        let mut counts = [0; MeterKind::COUNT];
        let mut present = true;
        for count in &mut counts {
            match self.opt_int()? {
                Some(value) => {
                    *count = u64::try_from(value)
                        .map_err(|_negative| BadRow::Value(self.next.saturating_sub(1)))?;
                }
                // Read on: the columns after these are found by their place.
                None => present = false,
            }
        }
        Ok(present.then_some(counts))
    }
}

fn bad(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> BadRow {
    BadRow::Column(at, Box::new(error))
}
