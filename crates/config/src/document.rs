//! A TOML document while it is read: every value knows its line, and every mistake is kept until
//! all have been found. The meaning of values belongs to the modules of the tables.
//!
//! `Document` owns the text and collects the mistakes. `ConfigTable` hands out `Field`s by key, and remembers which
//! keys were read: the set of known keys is the code that reads them, not a separate list. At the end of a
//! table `refuse_unknown` reports the other keys, with the nearest known word. A table that is dropped without
//! that call is a bug, which debug builds assert.
//!
//! Reading a bad value gives `None` and records a mistake; callers go on with the next value, so
//! that one run reports everything. Positions are byte offsets, which become line numbers in a
//! report. Messages quote keys and never values, because most values may be secrets.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::environment::Environment;
use crate::secret_file;
use holdfast_wire::nearest::nearest;

/// Part of a configuration's secrets that is used. A command that needs one of them works without the others in
/// the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretUse {
    /// All of them, as `serve` and `check-config` do.
    All,
    /// The database's and the server's, for what changes the book.
    Book,
    /// The database's, for what reads it.
    Database,
}

/// Stands for a variable that is not set and not used: long enough for every rule, and the secret of no part.
const UNUSED: &str = "a-variable-that-is-not-set-and-not-used";

impl SecretUse {
    fn has(self, path: &str) -> bool {
        let is_database = path.starts_with("database.");
        match self {
            Self::All => true,
            Self::Book => is_database || path.starts_with("server."),
            Self::Database => is_database,
        }
    }
}

/// A mistake in a configuration: its place, and a text with the correction. The text never has a value that
/// could be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    place: SourceLocation,
    what: String,
}

/// Place of a value: a line of a file, counted from one, or an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceLocation {
    Line { file: String, line: usize },
    Variable(&'static str),
}

impl Mistake {
    /// A mistake that was found after the file was read, at a place that was kept.
    pub(crate) fn at(place: SourceLocation, what: impl fmt::Display) -> Self {
        Self { place, what: what.to_string() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            SourceLocation::Line { file, line } => write!(f, "{file}:{line}: {}", self.what),
            SourceLocation::Variable(name) => write!(f, "{name} {}", self.what),
        }
    }
}

/// The text of a file, the environment that it may refer to, and the mistakes found so far.
pub(crate) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    environment: Environment<'a>,
    uses: SecretUse,
    mistakes: RefCell<Vec<(usize, Mistake)>>,
    /// Paths of the secrets that the text itself has.
    literal_secrets: RefCell<Vec<String>>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(
        file: &'a str,
        text: &'a str,
        environment: Environment<'a>,
        uses: SecretUse,
    ) -> Self {
        let (mistakes, literal_secrets) = (RefCell::default(), RefCell::default());
        Self { file, text, environment, uses, mistakes, literal_secrets }
    }

    /// Reads the syntax; `None` if that is wrong, because no key is known then.
    pub(crate) fn parse(&self) -> Option<Spanned<DeTable<'a>>> {
        match DeTable::parse(self.text) {
            Ok(root) => Some(root),
            Err(error) => {
                // An error without a place, like an end of file in a table, is shown at the first
                // line.
                let at = error.span().map_or(0, |span| span.start);
                let message = error.message();
                self.mistake(at, format!("not TOML: {message}{}", advice(message)));
                None
            }
        }
    }

    /// True if it is read to be served, or checked for that.
    pub(crate) fn is_served(&self) -> bool {
        self.uses == SecretUse::All
    }

    pub(crate) fn root<'d>(&'d self, table: &'d Spanned<DeTable<'a>>) -> ConfigTable<'d> {
        ConfigTable::new(self, Some(table.get_ref()), 0, String::new())
    }

    pub(crate) fn mistake(&self, at: usize, what: impl Into<String>) {
        let place = self.place(at);
        self.mistakes.borrow_mut().push((at, Mistake { place, what: what.into() }));
    }

    fn place(&self, at: usize) -> SourceLocation {
        SourceLocation::Line { file: self.file.to_owned(), line: self.line(at) }
    }

    fn line(&self, at: usize) -> usize {
        // Counted anew for each mistake: few documents have any, and the others need no table of lines.
        let before = self.text.get(..at).unwrap_or(self.text);
        before.matches('\n').count().saturating_add(1)
    }

    /// A mistake in an environment variable that overrides the file.
    pub(crate) fn mistake_in_variable(&self, name: &'static str, what: impl fmt::Display) {
        let mistake = Mistake { place: SourceLocation::Variable(name), what: format!("is {what}") };
        // Sorts behind all mistakes of the file, which have a line to go to.
        self.mistakes.borrow_mut().push((usize::MAX, mistake));
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    /// Paths of the secrets that the text itself has, each once, in the order in which they were read.
    pub(crate) fn literal_secrets(&self) -> Vec<String> {
        self.literal_secrets.borrow().clone()
    }

    /// Everything that was found, in the order of the file.
    pub(crate) fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.borrow().clone();
        // A stable sort: mistakes of one place stay in the order in which they were found.
        mistakes.sort_by_key(|(at, _)| *at);
        mistakes.into_iter().map(|(_, mistake)| mistake).collect()
    }
}

/// A table of the file, or an empty one in place of a table that is missing. Records the keys that were read:
/// every other key is unknown, and refused.
pub(crate) struct ConfigTable<'d> {
    document: &'d Document<'d>,
    entries: Option<&'d DeTable<'d>>,
    at: usize,
    path: String,
    known: RefCell<Vec<&'static str>>,
    refused: RefCell<Vec<&'static str>>,
    checked: Cell<bool>,
}

impl<'d> ConfigTable<'d> {
    fn new<'a: 'd>(
        document: &'d Document<'a>,
        entries: Option<&'d DeTable<'a>>,
        at: usize,
        path: String,
    ) -> Self {
        let (known, refused) = (RefCell::default(), RefCell::default());
        Self { document, entries, at, path, known, refused, checked: Cell::new(false) }
    }

    /// True if the file has this table, even an empty one.
    pub(crate) fn is_present(&self) -> bool {
        self.entries.is_some()
    }

    /// A mistake of the table as a whole.
    pub(crate) fn mistake(&self, what: impl Into<String>) {
        self.document.mistake(self.at, what);
    }

    /// File and line of the table's head, for mistakes that are found later.
    pub(crate) fn place(&self) -> SourceLocation {
        self.document.place(self.at)
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn entry(&self, key: &str) -> Option<Field<'d>> {
        let (name, value) = self.entries?.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(Field {
            document: self.document,
            value: value.get_ref(),
            at: name.span().start,
            path: self.join(key),
        })
    }

    /// A value that may be missing.
    pub(crate) fn field(&self, key: &'static str) -> Option<Field<'d>> {
        self.known.borrow_mut().push(key);
        self.entry(key)
    }

    /// A value that must be there; `example` is a line that would do.
    pub(crate) fn required(&self, key: &'static str, example: &str) -> Option<Field<'d>> {
        let field = self.field(key);
        if field.is_none() {
            self.mistake(format!("`{}` is missing: add {example}", self.join(key)));
        }
        field
    }

    /// A key without a meaning here although another table or kind knows it: `why` goes on from its name.
    pub(crate) fn refuse(&self, key: &'static str, why: &str) {
        if let Some(field) = self.entry(key) {
            self.refused.borrow_mut().push(key);
            field.mistake(why);
        }
    }

    /// A table; an empty one if the file has none.
    pub(crate) fn table(&self, key: &'static str) -> Self {
        let found = self.field(key).and_then(|field| field.table());
        // Readers of a table need no second path for a missing one: an empty table gives each
        // default.
        found.unwrap_or_else(|| Self::new(self.document, None, self.at, self.join(key)))
    }

    /// An array of tables; empty if the file has none.
    pub(crate) fn tables(&self, key: &'static str) -> Vec<Self> {
        let Some(field) = self.field(key) else { return Vec::new() };
        let DeValue::Array(items) = field.value else {
            field.expected(&format!("tables: write [[{}]]", field.path));
            return Vec::new();
        };
        items.iter().filter_map(|item| field.item(item).table()).collect()
    }

    /// Every table in this one, by a name that the operator chose.
    pub(crate) fn named_tables(&self) -> Vec<(&'d str, Self)> {
        self.checked.set(true);
        let names = self.entries.into_iter().flat_map(DeTable::keys);
        names
            .filter_map(|name| {
                let name: &'d str = name.get_ref();
                Some((name, self.entry(name)?.table()?))
            })
            .collect()
    }

    /// Every value in this one, by a name that the operator chose.
    pub(crate) fn named_fields(&self) -> Vec<(&'d str, Field<'d>)> {
        self.checked.set(true);
        let names = self.entries.into_iter().flat_map(DeTable::keys);
        names
            .filter_map(|name| {
                let name: &'d str = name.get_ref();
                Some((name, self.entry(name)?))
            })
            .collect()
    }

    /// Leaves the rest unchecked, if no other key can be judged.
    pub(crate) fn ignore_unknown(&self) {
        self.checked.set(true);
    }

    /// Refuses the keys that were not read.
    pub(crate) fn refuse_unknown(&self) {
        self.checked.set(true);
        let known = self.known.borrow();
        for name in self.entries.into_iter().flat_map(DeTable::keys) {
            let written: &str = name.get_ref();
            // A refused key has its mistake already, which is more precise than that it is unknown.
            if known.contains(&written) || self.refused.borrow().contains(&written) {
                continue;
            }
            let place =
                if self.path.is_empty() { String::new() } else { format!(" in {}", self.path) };
            let meant = did_you_mean(written, known.iter().copied());
            let what = format!(
                "unknown key `{}`{place}: {meant}known here are {}",
                written.escape_debug(),
                known.join(", ")
            );
            self.document.mistake(name.span().start, what);
        }
    }
}

/// Advice that goes on from a message of the TOML reader; empty if that message is enough.
fn advice(message: &str) -> &'static str {
    if message.starts_with("duplicate") {
        ": it is written above already; write a key, and a table in single brackets, once"
    } else if message.starts_with("invalid") || message.contains("quote") {
        ": texts, addresses and spans of time stand in quotes, numbers do not"
    } else {
        ""
    }
}

/// Suggests the nearest of the known words; empty if none is near.
pub(crate) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = nearest(written, known);
    nearest.map_or_else(String::new, |nearest| format!("did you mean `{nearest}`? "))
}

impl Drop for ConfigTable<'_> {
    fn drop(&mut self) {
        // During a panic a second one would abort the process and hide the first.
        debug_assert!(
            self.checked.get() || self.entries.is_none() || std::thread::panicking(),
            "unknown keys of {} were not looked for",
            self.path
        );
    }
}

/// A value of the file with its byte offset and its dotted path, which messages name.
pub(crate) struct Field<'d> {
    document: &'d Document<'d>,
    pub(crate) value: &'d DeValue<'d>,
    at: usize,
    path: String,
}

impl<'d> Field<'d> {
    /// Reports a mistake of this value: `what` goes on from its name.
    pub(crate) fn mistake(&self, what: impl fmt::Display) {
        self.document.mistake(self.at, format!("`{}` {what}", self.path));
    }

    /// Records the mistake of a wrong type: `what` names the one that is needed.
    pub(crate) fn expected(&self, what: &str) {
        let found = self.value.type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        self.mistake(format_args!("is {article} {found}, but must be {what}"));
    }

    /// Value of a variable that stands in this value.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let unused = || UNUSED.to_owned();
        if self.document.uses.has(&self.path) {
            self.document.variable(name)
        } else {
            Some(self.document.variable(name).unwrap_or_else(unused))
        }
    }

    /// Secret in a file that stands in this value; `None` after a mistake.
    pub(crate) fn secret_file(&self, path: &str) -> Option<String> {
        if !self.document.uses.has(&self.path) {
            return Some(UNUSED.to_owned());
        }
        let configuration = Path::new(self.document.file);
        secret_file::read(path, configuration).map_err(|error| self.mistake(error)).ok()
    }

    /// Remembers that the text itself has this secret.
    pub(crate) fn note_literal_secret(&self) {
        let mut noted = self.document.literal_secrets.borrow_mut();
        if !noted.contains(&self.path) {
            noted.push(self.path.clone());
        }
    }

    /// The line that it stands in.
    pub(crate) fn line(&self) -> usize {
        self.document.line(self.at)
    }

    /// An item of this array.
    pub(crate) fn item(&self, item: &'d Spanned<DeValue<'d>>) -> Self {
        Self {
            document: self.document,
            value: item.get_ref(),
            at: item.span().start,
            path: self.path.clone(),
        }
    }

    fn table(self) -> Option<ConfigTable<'d>> {
        if let DeValue::Table(table) = self.value {
            Some(ConfigTable::new(self.document, Some(table), self.at, self.path))
        } else {
            self.expected("a table");
            None
        }
    }
}
