//! Sections: the kinds of things that a page has, each with one template.
//!
//! | kind | what it shows |
//! |---|---|
//! | [`Facts`] | names and values of one thing |
//! | [`Table`] | rows, with a link to the next page and what to do where there are none |
//! | [`Chart`] | bars, beside the table that has the same numbers |
//! | [`Filter`] | a form that narrows a list: its query is the address of what it shows |
//! | [`Form`] | a form that changes something |
//! | [`Notice`] | a sentence that must be read |
//! | [`Snippet`] | text to copy: a secret that is told once, a command, an example |

use std::collections::BTreeSet;
use std::fmt;

use askama::Template;

use crate::kit::cell::{Cell, Link, Tone};
use crate::kit::field::FormField;

/// Section of a page.
#[derive(Debug, Clone)]
pub(crate) enum Section {
    Facts(Facts),
    Table(Table),
    Chart(Chart),
    Filter(Filter),
    Form(Box<Form>),
    Notice(Notice),
    Snippet(Snippet),
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Facts(facts) => facts.fmt(f),
            Self::Table(table) => table.fmt(f),
            Self::Chart(chart) => chart.fmt(f),
            Self::Filter(filter) => filter.fmt(f),
            Self::Form(form) => form.fmt(f),
            Self::Notice(notice) => notice.fmt(f),
            Self::Snippet(snippet) => snippet.fmt(f),
        }
    }
}

/// Writes how each kind becomes a section.
macro_rules! sections {
    ($($kind:ident),+) => {$(
        impl From<$kind> for Section {
            fn from(section: $kind) -> Self {
                Self::$kind(section)
            }
        }
    )+};
}

sections! { Facts, Table, Chart, Filter, Notice, Snippet }

impl From<Form> for Section {
    fn from(form: Form) -> Self {
        Self::Form(Box::new(form))
    }
}

/// Names and values of one thing.
#[derive(Debug, Clone, Template)]
#[template(path = "facts.html")]
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) rows: Vec<(String, Cell)>,
}

impl Facts {
    pub(crate) fn new(title: &str, rows: Vec<(&str, Cell)>) -> Self {
        let rows = rows.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect();
        Self { title: title.to_owned(), rows }
    }
}

/// Rows under a head. Its caption is the title; numbers stand to the right.
#[derive(Debug, Clone, Template)]
#[template(path = "table.html")]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Sentence in the place of rows, which says what to do next.
    pub(crate) empty: String,
    /// Links beneath: the next page, the rows behind, a file.
    pub(crate) links: Vec<Link>,
}

impl Table {
    pub(crate) fn new(title: &str, head: &[&str], rows: Vec<Vec<Cell>>, empty: &str) -> Self {
        let head = head.iter().map(|name| (*name).to_owned()).collect();
        Self { title: title.to_owned(), head, rows, empty: empty.to_owned(), links: Vec::new() }
    }

    /// The same with a link beneath.
    pub(crate) fn link(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// The same with a link to the next page, where there is one.
    pub(crate) fn next(self, address: Option<String>) -> Self {
        match address {
            Some(address) => self.link(Link::new("Next page", address)),
            None => self,
        }
    }

    /// Columns that have numbers, whose heads stand above them: found once for all cells of a table.
    fn numeric_columns(&self) -> BTreeSet<usize> {
        let cells = self.rows.iter().flat_map(|row| row.iter().enumerate());
        cells.filter(|(_column, cell)| cell.is_number()).map(|(column, _cell)| column).collect()
    }
}

/// Bars, drawn by the server. Its numbers stand in a table beneath, which whoever cannot see it reads.
#[derive(Debug, Clone, Template)]
#[template(path = "chart.html")]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

/// Bar of a chart.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// Name below it.
    pub(crate) name: String,
    /// Number as people read it.
    pub(crate) shown: String,
    /// Height, of 100.
    height: u64,
    /// Distance from the left, of the chart's width.
    left: usize,
}

/// Height of the tallest bar.
const HEIGHT: u64 = 100;
/// Width of a bar with the gap behind it.
const STEP: usize = 12;

impl Chart {
    /// A chart of names, numbers, and the numbers as people read them. What is less than nothing has no bar.
    pub(crate) fn new(title: &str, numbers: Vec<(String, i64, String)>) -> Self {
        let heights = numbers.iter().map(|(_, number, _)| u64::try_from(*number).unwrap_or(0));
        let most = heights.max().unwrap_or(0).max(1);
        let bar = |(at, (name, number, shown)): (usize, (String, i64, String))| {
            let number = u128::from(u64::try_from(number).unwrap_or(0));
            let height = number * u128::from(HEIGHT) / u128::from(most);
            let height = u64::try_from(height).unwrap_or(HEIGHT);
            // What is there is seen, however little it is.
            let height = if number > 0 { height.max(1) } else { height };
            Bar { name, shown, height, left: at * STEP }
        };
        let bars = numbers.into_iter().enumerate().map(bar).collect();
        Self { title: title.to_owned(), bars }
    }

    fn width(&self) -> usize {
        self.bars.len().max(1) * STEP
    }
}

impl Bar {
    fn top(&self) -> u64 {
        HEIGHT.saturating_sub(self.height)
    }
}

/// Form that narrows a list: sent by GET, so that its address can be kept and shared.
#[derive(Debug, Clone, Template)]
#[template(path = "filter.html")]
pub(crate) struct Filter {
    pub(crate) action: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) submit: String,
}

/// A form as it stands on a page.
#[derive(Debug, Clone, Template)]
#[template(path = "form.html")]
pub(crate) struct Form {
    pub(crate) action: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) submit: String,
    /// True for what cannot be taken back.
    pub(crate) is_grave: bool,
}

/// A sentence that must be read.
#[derive(Debug, Clone, Template)]
#[template(path = "notice.html")]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) tone: Tone,
    pub(crate) links: Vec<Link>,
}

impl Notice {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone, links: Vec::new() }
    }

    pub(crate) fn link(mut self, text: &str, href: impl Into<String>) -> Self {
        self.links.push(Link::new(text, href));
        self
    }
}

/// Text to copy.
#[derive(Debug, Clone, Template)]
#[template(path = "snippet.html")]
pub(crate) struct Snippet {
    pub(crate) title: String,
    pub(crate) text: String,
}

impl Snippet {
    pub(crate) fn new(title: &str, text: impl Into<String>) -> Self {
        Self { title: title.to_owned(), text: text.into() }
    }
}
