//! Sections: the parts of a page, each with one template.
//!
//! | kind | what it shows |
//! |---|---|
//! | [`Facts`] | names and values of one resource |
//! | [`Cards`] | resources side by side, each with its facts |
//! | [`Table`] | rows, with a link to the next page and an empty state |
//! | [`DayLog`] | sentences by day, with their values folded |
//! | [`TimeChart`], [`Ranking`], [`Tiles`] | values over time, the largest values, numbers of the first screen |
//! | [`Choices`] | links of which one is chosen |
//! | [`Checklist`] | first steps, done or to be done |
//! | [`Filter`] | a form that narrows a list: its query is the address of what it shows |
//! | [`Form`] | a form that changes a resource |
//! | [`Notice`] | a sentence that must be read |
//! | [`Snippet`] | text to copy: a secret that is shown once, a command, an example |

use std::collections::BTreeSet;
use std::fmt;

use askama::Template;

use crate::kit::{
    Cell, DayLog, FieldKind, FormField, Link, Ranking, Tiles, TimeChart, Tone, with_query,
};

/// Section of a page.
#[derive(Debug, Clone)]
pub(crate) enum Section {
    Facts(Facts),
    Cards(Cards),
    Table(Table),
    DayLog(DayLog),
    TimeChart(TimeChart),
    Ranking(Ranking),
    Tiles(Tiles),
    Choices(Choices),
    Checklist(Checklist),
    Filter(Filter),
    Form(Box<Form>),
    Notice(Notice),
    Snippet(Snippet),
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Facts(facts) => facts.fmt(f),
            Self::Cards(cards) => cards.fmt(f),
            Self::Table(table) => table.fmt(f),
            Self::DayLog(log) => log.fmt(f),
            Self::TimeChart(chart) => chart.fmt(f),
            Self::Ranking(ranking) => ranking.fmt(f),
            Self::Tiles(tiles) => tiles.fmt(f),
            Self::Choices(choices) => choices.fmt(f),
            Self::Checklist(checklist) => checklist.fmt(f),
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

sections! { Facts, Cards, Table, DayLog, TimeChart, Ranking, Tiles, Choices, Checklist, Filter, Notice, Snippet }

impl From<Form> for Section {
    fn from(form: Form) -> Self {
        Self::Form(Box::new(form))
    }
}

/// Names and values of one resource.
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

/// Resources side by side.
#[derive(Debug, Clone, Template)]
#[template(path = "cards.html")]
pub(crate) struct Cards {
    pub(crate) title: String,
    pub(crate) cards: Vec<Facts>,
    /// Sentence of the empty state.
    pub(crate) empty: String,
}

/// Columns that a table has on a tablet, beside the first one and the amount.
const COLUMNS_OF_TABLET: usize = 4;

/// Rows under a head. Its caption is the title; numbers stand to the right.
#[derive(Debug, Clone, Template)]
#[template(path = "table.html")]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    /// Heads of the columns that stand on every screen.
    pub(crate) kept: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Sums of all rows, of those on other pages too.
    pub(crate) total: Vec<Cell>,
    /// Sentence of the empty state, with the next step.
    pub(crate) empty: String,
    /// Links beneath: the next page, the rows behind, a file.
    pub(crate) links: Vec<Link>,
    /// Sorting of each column, for those that can be sorted by.
    sorts: Vec<Option<SortLink>>,
}

/// Way to the rows in the order of a column.
#[derive(Debug, Clone)]
pub(crate) struct SortLink {
    pub(crate) href: String,
    /// Present order by the column, as ARIA names it; empty if the rows have another order.
    pub(crate) order: &'static str,
}

impl Table {
    pub(crate) fn new(
        title: &str,
        head: &[&str],
        rows: Vec<Vec<Cell>>,
        empty: impl ToString,
    ) -> Self {
        let head = head.iter().map(|name| (*name).to_owned()).collect();
        let (title, empty) = (title.to_owned(), empty.to_string());
        Self {
            title,
            head,
            kept: Vec::new(),
            rows,
            total: Vec::new(),
            empty,
            links: Vec::new(),
            sorts: Vec::new(),
        }
    }

    /// A table of rows whose values have their heads beside them.
    pub(crate) fn of<const N: usize>(
        title: &str,
        rows: impl IntoIterator<Item = [(&'static str, Cell); N]>,
        empty: impl ToString,
    ) -> Self {
        let (mut head, mut cells) = (Vec::new(), Vec::new());
        for row in rows {
            // The same for each row. Without one there is no head: the sentence stands in its place.
            head = row.iter().map(|(name, _cell)| *name).collect();
            cells.push(row.into_iter().map(|(_name, cell)| cell).collect());
        }
        Self::new(title, &head, cells, empty)
    }

    /// The same whose columns under these heads stand on every screen.
    pub(crate) fn keep(self, heads: &[&str]) -> Self {
        Self { kept: heads.iter().map(|head| (*head).to_owned()).collect(), ..self }
    }

    /// The same with sums of all rows.
    pub(crate) fn total(self, total: Vec<Cell>) -> Self {
        Self { total, ..self }
    }

    /// The same with the sorting of its columns, in their order.
    pub(crate) fn sorts(self, sorts: Vec<Option<SortLink>>) -> Self {
        Self { sorts, ..self }
    }

    /// The same without a column, if `is_there` is false: a role may lack it.
    pub(crate) fn column_if(mut self, is_there: bool, column: usize) -> Self {
        if !is_there {
            self.head.remove(column);
            self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            if column < self.sorts.len() {
                self.sorts.remove(column);
            }
        }
        self
    }

    fn sort(&self, column: &usize) -> Option<&SortLink> {
        self.sorts.get(*column).and_then(Option::as_ref)
    }

    /// The same with a link beneath.
    pub(crate) fn link(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// The same with a link to the next page, if there is one.
    pub(crate) fn next(self, address: Option<String>) -> Self {
        match address {
            Some(address) => self.link(Link::new("Next page", address)),
            None => self,
        }
    }

    /// Classes of the columns, by their numbers from 1, for the stylesheet: `a` the amount of a card, `l` its second
    /// line, `w` only on a wide screen. The first column is the first line of a card, and columns without a class
    /// stand in the table of a tablet and in no card. On the table, not on its cells: a page has 50 KB.
    ///
    /// Actions and kept columns stand everywhere, and of the others money goes last. The amount is money, of a kept
    /// column before others; without money it is a number, and a table that keeps its own has none.
    fn column_classes(&self) -> String {
        let (money, actions) = (self.columns(Cell::is_money), self.columns(Cell::is_action));
        let is_kept =
            |column: usize| self.head.get(column).is_some_and(|it| self.kept.contains(it));
        let stands = |column: usize| is_kept(column) || actions.contains(&column);
        let mut others: Vec<_> = (1..self.head.len()).collect();
        others.sort_by_key(|column| (!stands(*column), !money.contains(column)));
        let numeric = self.numeric_columns();
        let is_number = |column: &usize| self.kept.is_empty() && numeric.contains(column);
        let amount = others.iter().copied().find(|column| money.contains(column));
        let amount = amount.or_else(|| others.iter().copied().find(is_number));
        others.retain(|column| Some(*column) != amount);
        let mut texts = others.iter().filter(|it| !stands(**it) && !money.contains(it)).copied();
        let second_line: Vec<_> =
            if self.kept.is_empty() { texts.by_ref().take(2).collect() } else { Vec::new() };
        let class = |(place, column): (usize, usize)| {
            let number = column.saturating_add(1);
            if stands(column) || second_line.contains(&column) {
                Some(format!("l{number}"))
            } else {
                (place >= COLUMNS_OF_TABLET).then(|| format!("w{number}"))
            }
        };
        let amount = amount.map(|column| format!("a{}", column.saturating_add(1)));
        amount
            .into_iter()
            .chain(others.iter().copied().enumerate().filter_map(class))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Columns that have numbers, whose heads stand above them: found once for all cells of a table.
    fn numeric_columns(&self) -> BTreeSet<usize> {
        self.columns(Cell::is_number)
    }

    /// Columns with a cell like this.
    fn columns(&self, is_like: fn(&Cell) -> bool) -> BTreeSet<usize> {
        let rows = self.rows.iter().chain([&self.total]);
        let cells = rows.flat_map(|row| row.iter().enumerate());
        cells.filter(|(_column, cell)| is_like(cell)).map(|(column, _cell)| column).collect()
    }
}

/// Links of which one is chosen: periods, currencies.
#[derive(Debug, Clone, Template)]
#[template(path = "choices.html")]
pub(crate) struct Choices {
    pub(crate) label: String,
    /// Links, and whether each is the one that the page shows.
    pub(crate) links: Vec<(Link, bool)>,
}

/// First steps of an installation.
#[derive(Debug, Clone, Template)]
#[template(path = "checklist.html")]
pub(crate) struct Checklist {
    pub(crate) title: String,
    /// Links to the steps, and true for those that are done.
    pub(crate) steps: Vec<(Link, bool)>,
}

/// Form that narrows a list: sent by GET, so that its address can be kept and shared.
#[derive(Debug, Clone, Template)]
#[template(path = "filter.html")]
pub(crate) struct Filter {
    pub(crate) action: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) submit: String,
}

/// Fields that a filter shows at once; it folds the rest if that saves more than one.
const FIELDS_SHOWN: usize = 3;

impl Filter {
    pub(crate) fn new(action: &str, fields: Vec<FormField>) -> Self {
        Self { action: action.to_owned(), fields, submit: "Filter".to_owned() }
    }

    /// Values that narrow the list, each with the address of the list without it.
    fn chips(&self) -> Vec<Link> {
        // A required field, such as the grouping of a report, has a value always and narrows no
        // list.
        let is_chip = |field: &&FormField| {
            field.kind != FieldKind::Hidden && !field.is_required && !field.value.is_empty()
        };
        let chip = |field: &FormField| {
            let others = self.fields.iter().filter(|other| other.name != field.name);
            let others: Vec<_> =
                others.map(|other| (other.name, Some(other.value.as_str()))).collect();
            let text = format!("{}: {}", field.label, field.shown_value());
            Link::new(text, with_query(&self.action, &others))
        };
        self.fields.iter().filter(is_chip).map(chip).collect()
    }

    fn shown(&self) -> &[FormField] {
        self.fields.get(..self.fold()).unwrap_or(&self.fields)
    }

    fn folded(&self) -> &[FormField] {
        self.fields.get(self.fold()..).unwrap_or(&[])
    }

    fn fold(&self) -> usize {
        let all = self.fields.len();
        if all > FIELDS_SHOWN + 1 { FIELDS_SHOWN } else { all }
    }

    /// True if a folded field narrows the list, or cannot be read.
    fn is_open(&self) -> bool {
        let is_used = |field: &FormField| !field.value.is_empty() || field.error.is_some();
        self.folded().iter().any(|field| field.kind != FieldKind::Hidden && is_used(field))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Choice;

    #[test]
    fn a_filter_folds_its_rest_unless_it_is_in_use() {
        let field = |name: &'static str| FormField::optional(name, name, FieldKind::Text);
        let fields: Vec<_> = ["a", "b", "c", "d", "e"].map(field).to_vec();
        let filter = |fields: Vec<FormField>| Filter {
            action: "/x".to_owned(),
            fields,
            submit: "Filter".to_owned(),
        };
        let shown = filter(fields.clone()).to_string();
        let (before, folded) = shown.split_once("<details><summary>More filters").unwrap();
        assert!(before.contains("id=\"c\"") && !before.contains("id=\"d\""), "{shown}");
        assert!(folded.contains("id=\"d\"") && folded.contains("id=\"e\""), "{shown}");
        let mut used = fields.clone();
        used[4] = used[4].clone().value("7");
        assert!(filter(used).to_string().contains("<details open>"));
        assert!(!filter(fields[..4].to_vec()).to_string().contains("<details"));
    }

    #[test]
    fn a_value_that_narrows_is_a_chip_that_takes_it_away() {
        let states =
            FieldKind::Select(vec![Choice::new("", "Any"), Choice::new("low", "Runs low")]);
        let filter = Filter {
            action: "/x".to_owned(),
            fields: vec![
                FormField::optional("name", "Name", FieldKind::Text).value("a&b"),
                FormField::optional("state", "State", states).value("low"),
                FormField::optional("key", "API key", FieldKind::Text),
                FormField::optional("period", "Period", FieldKind::Hidden).value("7d"),
            ],
            submit: "Filter".to_owned(),
        };
        let chips = filter.chips();
        let chips: Vec<_> = chips.iter().map(|it| (it.text.as_str(), it.href.as_str())).collect();
        assert_eq!(
            chips,
            [
                ("Name: a&b", "/x?state=low&period=7d"),
                ("State: Runs low", "/x?name=a%26b&period=7d")
            ]
        );
        assert_eq!(filter.to_string().matches("class=\"chip\"").count(), 2);
    }

    #[test]
    fn a_card_has_a_name_and_its_facts_and_no_card_has_a_sentence() {
        let cards = |cards| Cards { title: "M".to_owned(), cards, empty: "None.".to_owned() };
        let html =
            cards(vec![Facts::new("<b>", vec![("Context", Cell::count(8_000))])]).to_string();
        assert!(html.contains("<h3><bdi>&#60;b&#62;</bdi></h3>"), "{html}");
        assert!(html.contains("<dt>Context</dt><dd><span class=\"number\">8,000"), "{html}");
        let none = cards(Vec::new()).to_string();
        assert!(none.contains("None.") && !none.contains("<ul>"), "{none}");
    }

    #[test]
    fn a_step_that_is_done_has_no_link() {
        let steps = vec![(Link::new("Create", "/new"), true), (Link::new("Issue", "/keys"), false)];
        let html = Checklist { title: "First steps".to_owned(), steps }.to_string();
        assert!(!html.contains("href=\"/new\"") && html.contains("href=\"/keys\""), "{html}");
        assert!(html.contains(">done</span> Create") && html.contains(">open</span>"), "{html}");
    }

    #[test]
    fn a_head_that_sorts_says_its_order_and_leads_to_the_other() {
        let rows = || vec![vec![Cell::text("a"), Cell::count(1)]];
        let sorts =
            vec![None, Some(SortLink { href: "/x?sort=-n".to_owned(), order: "descending" })];
        let table = Table::new("T", &["Name", "N"], rows(), "").sorts(sorts).to_string();
        let head = "<th scope=\"col\" class=\"number\" aria-sort=\"descending\"><a href=\"/x?sort=-n\">N</a></th>";
        assert!(table.contains(head) && table.contains("<th scope=\"col\">Name</th>"), "{table}");
    }

    #[test]
    fn a_table_names_the_columns_that_a_card_has_and_those_of_a_wide_screen_alone() {
        let money = || Cell::Money("7.00".to_owned());
        let row = || {
            let texts = ["now", "done", "large"].map(Cell::text);
            let rest = ["key", "acme", "eu", "x"].map(Cell::text);
            texts.into_iter().chain([money()]).chain(rest).collect()
        };
        let head = ["When", "State", "Model", "Charge", "API key", "Wallet", "Region", "Note"];
        let table = Table::new("Requests", &head, vec![row()], "");
        assert_eq!(table.column_classes(), "a4 l2 l3 w7 w8");
        assert!(table.to_string().contains("<table class=\"a4 l2 l3 w7 w8\">"), "{table}");
        let plain = Table::new("People", &["Person", "Role"], vec![vec![Cell::text("a")]], "");
        assert_eq!(plain.column_classes(), "l2");
        assert_eq!(table.keep(&["Note", "Wallet"]).column_classes(), "a4 l6 l8 w5 w7");
    }

    #[test]
    fn actions_stand_on_every_screen_and_money_goes_last() {
        let row = || {
            let mut row = vec![Cell::text("first")];
            row.extend((0..6).map(Cell::count));
            row.extend([Cell::Money("7.00".to_owned()), Cell::Money("8.00".to_owned())]);
            row.push(Cell::action("End it", "/x"));
            row
        };
        let head = ["A", "B", "C", "D", "E", "F", "G", "Before", "After", "End"];
        let table = || Table::new("Wide", &head, vec![row()], "");
        // The first money is the amount of a card, not the first number.
        assert_eq!(table().column_classes(), "a8 l10 l2 l3 w4 w5 w6 w7");
        assert_eq!(table().keep(&["After"]).column_classes(), "a9 l10 w4 w5 w6 w7");
    }
}
