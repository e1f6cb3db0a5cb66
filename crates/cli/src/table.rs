//! Tables of answers: their columns, and the choice among them.
//!
//! ```text
//! columns ─┬─ --columns A,B  ─▶ these, in this order
//!          ├─ --wide, a pipe ─▶ all
//!          └─ a terminal     ─▶ those that its width has room for; a note counts the others
//! ```
//!
//! For a person a moment is to the second in UTC, and the amounts of a column have equally many decimals. A pipe
//! gets all columns in one order on every terminal, so that a script reads the same on each of them. Numbers
//! are aligned right on a terminal. An id or a number is never broken over two lines.
//!
//! Never: a value that is cut short. A text that is too long goes on in the next line.

use std::io;

use anyhow::anyhow;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};
use serde::Serialize;

use crate::arguments::read::ColumnChoice;
use crate::failure::{CommandFailure, Result};
use crate::output::{self, Output, note};

/// Columns of characters from which a terminal shows columns of the second rank.
const ROOMY: u16 = 120;

/// Characters that a text keeps with `--wide`, if it is that long.
const TEXT_WIDTH: u16 = 12;
/// Blanks around a cell.
const PADDING: u16 = 2;

/// Column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Member of the API, or the name under which a command puts a cell together.
    pub(crate) name: &'static str,
    content: CellContent,
    rank: Rank,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellContent {
    Text,
    /// Amounts and counts.
    Number,
    /// Moments of RFC 3339.
    Moment,
    /// Ids, which a terminal shows after the names.
    Id,
}

/// Importance of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// In every table.
    First,
    /// From [`ROOMY`] characters on.
    Second,
    /// With `--wide`.
    Third,
}

/// Ending and beginning of members that are amounts: a column has their name without it.
pub(crate) const MICROS: &str = "_micros";
pub(crate) const MICROS_BY_KIND: &str = "micros_";

impl Column {
    /// A column of texts in every table.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, content: CellContent::Text, rank: Rank::First }
    }

    /// A column of amounts or counts in every table.
    pub(crate) const fn number(name: &'static str) -> Self {
        Self { name, content: CellContent::Number, rank: Rank::First }
    }

    /// A column of moments in every table. A terminal shows them to the second.
    pub(crate) const fn moment(name: &'static str) -> Self {
        Self { name, content: CellContent::Moment, rank: Rank::First }
    }

    /// A column of ids in every table, the last one on a terminal.
    pub(crate) const fn id(name: &'static str) -> Self {
        Self { name, content: CellContent::Id, rank: Rank::First }
    }

    /// Column that is drawn from 120 characters on.
    pub(crate) const fn second(self) -> Self {
        Self { rank: Rank::Second, ..self }
    }

    /// Column that is drawn with `--wide` only.
    pub(crate) const fn third(self) -> Self {
        Self { rank: Rank::Third, ..self }
    }

    /// Heading on a terminal, which has the names of wallets for their ids.
    fn heading(self) -> &'static str {
        if self.name == "wallet_id" { "wallet" } else { self.title() }
    }

    /// Title of the column, which `--columns` takes.
    pub(crate) fn title(self) -> &'static str {
        let name = self.name;
        name.strip_suffix(MICROS).or_else(|| name.strip_prefix(MICROS_BY_KIND)).unwrap_or(name)
    }
}

/// A table whose columns are chosen.
#[derive(Debug)]
pub(crate) struct Table {
    output: Output,
    columns: Vec<Column>,
    width: Option<u16>,
    /// True if all columns are asked for: texts then keep a width that can be read.
    is_wide: bool,
    /// Count of columns that the terminal has no room for.
    hidden: usize,
}

impl Table {
    /// The table of these columns. Called before a request is sent: a name that is none of them is an error of
    /// the command line.
    pub(crate) fn new(output: Output, choice: &ColumnChoice, all: &[Column]) -> Result<Self> {
        let width = match output {
            Output::Table => {
                terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
            }
            Output::Plain | Output::Json => None,
        };
        Self::of_width(output, choice, all, width)
    }

    fn of_width(
        output: Output,
        choice: &ColumnChoice,
        all: &[Column],
        width: Option<u16>,
    ) -> Result<Self> {
        if matches!(output, Output::Json) && !choice.is_default() {
            return Err(CommandFailure::Usage(anyhow!(
                "JSON has every member: leave --columns and --wide out"
            )));
        }
        let columns = match &choice.columns {
            Some(names) => chosen(names, all)?,
            None => {
                let rank = match width {
                    Some(width) if !choice.wide && width < ROOMY => Rank::First,
                    Some(_) if !choice.wide => Rank::Second,
                    Some(_) | None => Rank::Third,
                };
                let mut columns: Vec<_> =
                    all.iter().copied().filter(|column| column.rank <= rank).collect();
                if matches!(output, Output::Table) {
                    // Stable: the names before the ids, and otherwise in the order of a pipe.
                    columns.sort_by_key(|column| column.content == CellContent::Id);
                }
                columns
            }
        };
        let hidden =
            if choice.columns.is_some() { 0 } else { all.len().saturating_sub(columns.len()) };
        Ok(Self { output, columns, width, is_wide: choice.wide, hidden })
    }

    /// A small table, whose columns are all shown.
    pub(crate) fn whole(output: Output, all: &[Column]) -> Self {
        Self { output, columns: all.to_vec(), width: None, is_wide: false, hidden: 0 }
    }

    /// True if a person reads it on a terminal, with the column of this name.
    pub(crate) fn is_drawn_with(&self, name: &str) -> bool {
        matches!(self.output, Output::Table)
            && self.columns.iter().any(|column| column.name == name)
    }

    /// Prints `view` as JSON, or a row of cells for each of its resources.
    pub(crate) fn print<T>(
        &self,
        view: &impl Serialize,
        things: &[T],
        cell: impl Fn(&T, &'static str) -> String,
    ) -> Result {
        let row =
            |thing| self.columns.iter().map(|column| cell(thing, column.name)).collect::<Vec<_>>();
        let text = match self.output {
            Output::Json => return output::json(view),
            Output::Plain => {
                let rows = things.iter().map(|thing| row(thing).join("\t"));
                let head: Vec<_> = self.columns.iter().map(|column| column.title()).collect();
                [head.join("\t")].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
            }
            Output::Table => self.drawn(things.iter().map(row)),
        };
        output::line(&text)?;
        if self.hidden > 0 {
            let hidden = self.hidden;
            note(&format!("hidden columns: {hidden}; --wide shows all, --columns chooses"));
        }
        Ok(())
    }

    fn drawn(&self, rows: impl Iterator<Item = Vec<String>>) -> String {
        let mut rows: Vec<_> = rows.collect();
        for (place, column) in self.columns.iter().enumerate() {
            column.content.align(rows.iter_mut().filter_map(|row| row.get_mut(place)));
        }
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(self.columns.iter().map(|column| column.heading().to_uppercase()));
        table.add_rows(rows);
        if let Some(width) = self.width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let widths = table.column_max_content_widths();
        for ((drawn, column), width) in table.column_iter_mut().zip(&self.columns).zip(widths) {
            if column.content == CellContent::Number {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
            if column.content != CellContent::Text {
                drawn.set_constraint(ColumnConstraint::ContentWidth);
            } else if self.is_wide {
                // All columns in a narrow terminal: a long line is read, a column of single letters is not.
                let least = Width::Fixed(width.min(TEXT_WIDTH).saturating_add(PADDING));
                drawn.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        table.trim_fmt()
    }
}

impl CellContent {
    /// Gives the cells of a column one form: as many decimals as the longest has, and moments to the second.
    fn align<'c>(self, cells: impl Iterator<Item = &'c mut String>) {
        let mut cells: Vec<_> = cells.collect();
        match self {
            Self::Text | Self::Id => {}
            Self::Number => {
                let decimals =
                    |cell: &str| cell.split_once('.').map(|(_, decimals)| decimals.len());
                // Zeros are added and no digit is cut: amounts in a column are compared by their
                // length, and a rounded one would be another amount.
                let most = cells.iter().filter_map(|cell| decimals(cell)).max();
                for cell in &mut cells {
                    if let Some((most, own)) = most.zip(decimals(cell)) {
                        cell.extend(std::iter::repeat_n('0', most.saturating_sub(own)));
                    }
                }
            }
            Self::Moment => {
                for cell in cells {
                    if let Some((day, time)) = cell.split_once('T') {
                        let time = time.get(..8).unwrap_or(time);
                        *cell = format!("{day} {time}");
                    }
                }
            }
        }
    }
}

/// The columns of these names.
fn chosen(names: &[String], all: &[Column]) -> Result<Vec<Column>> {
    let find = |name: &String| {
        let is_named = |column: &Column| {
            let titles = [column.title(), column.heading()];
            titles.iter().any(|title| title.eq_ignore_ascii_case(name.trim()))
        };
        let found = all.iter().copied().find(is_named);
        found.ok_or_else(|| {
            let titles: Vec<_> = all.iter().map(|column| column.title()).collect();
            CommandFailure::Usage(anyhow!(
                "--columns: there is no column {name}; the columns are {}",
                titles.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Column; 5] = [
        Column::id("id").second(),
        Column::text("name"),
        Column::number("available_micros"),
        Column::moment("created_at").second(),
        Column::text("note").third(),
    ];
    const THING: [&str; 5] = [
        "acme",
        "9.99",
        "2026-11-28T22:24:57.644000Z",
        "a note that goes on and on, far beyond what a narrow terminal has room for in one line",
        "01a22442-e4e6-72fe-b73a-6af6a131af54",
    ];

    fn names(output: Output, choice: &ColumnChoice, width: Option<u16>) -> Vec<&'static str> {
        let table = Table::of_width(output, choice, &ALL, width).unwrap();
        table.columns.iter().map(|column| column.title()).collect()
    }

    #[test]
    fn a_terminal_has_the_columns_that_it_has_room_for() {
        let all = ["name", "available", "created_at", "note", "id"];
        let plain = ["id", "name", "available", "created_at", "note"];
        let (any, wide) = (ColumnChoice::default(), ColumnChoice { wide: true, columns: None });
        assert_eq!(names(Output::Table, &any, Some(119)), ["name", "available"]);
        assert_eq!(
            names(Output::Table, &any, Some(120)),
            ["name", "available", "created_at", "id"]
        );
        assert_eq!(names(Output::Table, &wide, Some(80)), all);
        assert_eq!(names(Output::Plain, &any, None), plain);
        let columns = Some(vec!["id".to_owned(), " name".to_owned()]);
        let chosen = ColumnChoice { columns, wide: false };
        for output in [Output::Table, Output::Plain] {
            assert_eq!(names(output, &chosen, Some(80)), ["id", "name"]);
        }
    }

    #[test]
    fn columns_that_are_none_are_refused_with_those_that_are() {
        let choice = ColumnChoice { columns: Some(vec!["balance".to_owned()]), wide: false };
        let refused = Table::of_width(Output::Plain, &choice, &ALL, None).unwrap_err();
        let text = refused.message().unwrap();
        assert!(text.contains("balance") && text.contains("name, available, created_at"), "{text}");
        let refused = Table::of_width(Output::Json, &choice, &ALL, None).unwrap_err();
        assert!(refused.message().unwrap().contains("JSON"), "JSON has no columns");
    }

    #[test]
    fn all_columns_in_a_narrow_terminal_are_words_and_not_letters() {
        let choice = ColumnChoice { wide: true, columns: None };
        let table = Table::of_width(Output::Table, &choice, &ALL, Some(40)).unwrap();
        let drawn = table.drawn([THING.map(str::to_owned).to_vec()].into_iter());
        for part in ["acme", "a note that", THING[4]] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }

    #[test]
    fn lines_fit_the_terminal_and_keep_ids_and_numbers_whole() {
        let choice = ColumnChoice { wide: true, columns: None };
        let table = Table::of_width(Output::Table, &choice, &ALL, Some(100)).unwrap();
        let whole = THING.map(str::to_owned).to_vec();
        let other = ["umbrella", "100.123456", "-", "-", "-"].map(str::to_owned).to_vec();
        let drawn = table.drawn([whole, other].into_iter());
        assert!(drawn.lines().all(|line| line.chars().count() <= 100), "{drawn}");
        for part in [THING[4], "2026-11-28 22:24:57 ", "  9.990000 ", "100.123456 "] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }
}
