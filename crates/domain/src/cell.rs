//! Cells: the first two characters of a credential's id, by which a balancer routes a call.
//!
//! An operator whose wallets outgrow one database runs several installations, each with a database of its own. Each
//! is a *cell*, and gives every credential that it makes an id of the cell. The text of a bearer begins with that id,
//! so the balancer in front needs one line per cell, and neither a look-up nor a change of the bearer's format.
//!
//! Ids from before a cell was set stay valid, and may begin with the characters of another cell: an id of another
//! cell is a hint for whoever reads a refusal, and never a reason for one.
//!
//! ```
//! use holdfast_domain::CredentialId;
//! use holdfast_domain::cell::Cell;
//! use holdfast_domain::credential::Bearer;
//!
//! # fn main() -> Result<(), holdfast_domain::cell::BadCell> {
//! let cell = Cell::try_from("0A")?;
//! let id = cell.place(CredentialId::from_u128(u128::MAX));
//! assert!(Bearer::prefix(id).starts_with("hfk_0A"));
//! assert_eq!(Cell::of(id), Some(cell));
//! # Ok(())
//! # }
//! ```

use std::fmt;

use crate::CredentialId;
use crate::base62::{self, LEN_OF_128};

/// Ids of one cell: as many as the 20 characters after its own can spell.
const IDS: u128 = 62_u128.pow(20);
/// Numbers of cells: the first character is 0 to 6, because 22 characters from 7 on can spell more than 128 bits.
const CELLS: u128 = 7 * 62;

/// Name of a cell: two characters of base62, the first of them 0 to 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell(u16);

impl Cell {
    /// Cell of an id; `None` for the last eighth of all ids, which no cell has.
    #[must_use]
    pub fn of(id: CredentialId) -> Option<Self> {
        let number = u128::from_be_bytes(id.to_bytes()) / IDS;
        u16::try_from(number).ok().filter(|_| number < CELLS).map(Self)
    }

    /// Cell of an id that no installation of this cell has made.
    #[must_use]
    pub fn other_of(self, id: CredentialId) -> Option<Self> {
        Self::of(id).filter(|cell| *cell != self)
    }

    /// Id of this cell, as random in its other 20 characters as `random` is.
    #[must_use]
    pub fn place(self, random: CredentialId) -> CredentialId {
        let rest = u128::from_be_bytes(random.to_bytes()) % IDS;
        // Below 434 × 62^20, which is less than 2^128.
        CredentialId::from_u128(u128::from(self.0).wrapping_mul(IDS).wrapping_add(rest))
    }
}

impl TryFrom<&str> for Cell {
    type Error = BadCell;

    fn try_from(text: &str) -> Result<Self, BadCell> {
        // As the beginning of an id whose other characters are zero.
        let id = format!("{text:0<LEN_OF_128$}");
        let id = base62::read(&id).filter(|_| text.len() == 2).map(CredentialId::from_bytes);
        id.and_then(Self::of).ok_or(BadCell)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base62::write(&self.0.to_be_bytes(), 2))
    }
}

/// Text that names no cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cell: two letters or digits, the first of them 0 to 6, such as 0A")]
pub struct BadCell;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::Bearer;

    #[test]
    fn a_cell_is_the_beginning_of_each_of_its_ids() {
        let ids = [0, 1, IDS - 1, IDS, u128::MAX].map(CredentialId::from_u128);
        for name in ["00", "0A", "0z", "6Z", "6z"] {
            let cell = Cell::try_from(name).unwrap();
            assert_eq!(cell.to_string(), name);
            for id in ids {
                let placed = cell.place(id);
                let bearer = Bearer::prefix(placed);
                assert!(bearer.starts_with(&format!("hfk_{name}")), "{name}: {bearer}");
                assert_eq!(Cell::of(placed), Some(cell));
                let own = |id| Bearer::prefix(id).split_off("hfk_00".len());
                assert!(id == CredentialId::from_u128(u128::MAX) || own(id) == own(placed));
            }
        }
    }

    #[test]
    fn other_texts_name_no_cell() {
        for text in ["", "0", "0A0", "7A", "A0", "zz", "0-", "0é", " 0"] {
            assert_eq!(Cell::try_from(text), Err(BadCell), "{text:?}");
        }
        assert_eq!(Cell::of(CredentialId::from_u128(u128::MAX)), None);
    }
}
