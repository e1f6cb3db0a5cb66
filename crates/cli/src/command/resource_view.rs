//! Lists and resources that are shown as the API has them: a declaration each, with their path and the members for
//! people.
//!
//! With `--json` a row is the API's, whole. For people a member is a column under its own name; amounts, whose
//! names end in `_micros`, are decimals under the name without that, and so are those of prices by kind of unit,
//! whose names begin with `micros_`; a kind at price zero is left out.

use std::collections::BTreeMap;

use holdfast_domain::Micros;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::CommandContext;
use crate::admin_client::{AdminClientError, ListRows};
use crate::arguments::read::Rows;
use crate::failure::Result;
use crate::output::note;
use crate::table::{Column, MICROS, MICROS_BY_KIND, Table};
use crate::view::{NOTHING, amount, member, some_text, text};

/// Count of wallets whose names are read for one table.
const NAMES_MAX: usize = 1_000;

/// Resources of one kind.
#[derive(Debug)]
pub(super) struct ResourceView {
    /// Path of their list below `/admin/v1`.
    pub(super) path: &'static str,
    /// Name of the resources in a sentence.
    pub(super) things: &'static str,
    /// Members that are columns of the list.
    pub(super) columns: &'static [Column],
    /// Members that are fields of one resource, after those of the list.
    pub(super) more: &'static [Column],
    pub(super) paging: Paging,
}

/// Way in which the API lists resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// Page by page, newest first.
    Pages,
    /// All at once.
    Whole,
}

/// Parameters of a query; one without a value is left out.
pub(super) type Query<'q> = &'q [(&'static str, Option<String>)];

impl ResourceView {
    /// Lists resources, with a note if there are more.
    pub(super) async fn list(
        &self,
        context: &CommandContext<'_>,
        query: Query<'_>,
        rows: &Rows,
    ) -> Result {
        self.list_at(context, self.path, query, rows).await.map(drop)
    }

    /// Lists resources of another path, and returns them.
    pub(super) async fn list_at(
        &self,
        context: &CommandContext<'_>,
        path: &str,
        query: Query<'_>,
        rows: &Rows,
    ) -> Result<Vec<Value>> {
        let table = Table::new(context.output, &rows.columns, self.columns)?;
        let listed = self.rows(context, path, query, rows.limit).await?;
        let names = WalletNames::read(context, &table).await;
        table.print(&listed.rows, &listed.rows, |thing, name| {
            if name == WALLET { names.of(thing) } else { cell(thing, name) }
        })?;
        self.note_cut(&listed, rows.limit);
        Ok(listed.rows)
    }

    /// The resources of a list, at most so many.
    async fn rows(
        &self,
        context: &CommandContext<'_>,
        path: &str,
        query: Query<'_>,
        limit: u32,
    ) -> Result<ListRows> {
        let count = usize::try_from(limit).unwrap_or(usize::MAX);
        let query = given(query);
        let nothing = format!("{} were not listed", self.things);
        match self.paging {
            Paging::Pages => {
                let listed = context.client.list(path, &query, Some(count)).await;
                Ok(listed.map_err(|error| error.because(&nothing))?)
            }
            Paging::Whole => {
                let listed = context.client.get(path, &query).await;
                let mut listed = listed.map_err(|error| error.because(&nothing))?;
                let rows = listed.get_mut("data").and_then(Value::as_array_mut);
                let rows = rows.ok_or(AdminClientError::NotTheApi);
                let mut rows = std::mem::take(rows.map_err(|error| error.because(&nothing))?);
                let is_cut = rows.len() > count;
                rows.truncate(count);
                Ok(ListRows { rows, is_cut })
            }
        }
    }

    /// Notes that there are more resources than were listed.
    fn note_cut(&self, listed: &ListRows, limit: u32) {
        if listed.is_cut {
            let first = match self.paging {
                Paging::Pages => "newest",
                Paging::Whole => "first",
            };
            note(&format!("only the {first} {limit} are shown: there are more, --limit N shows N"));
        }
    }

    /// Shows the resource of this id.
    pub(super) async fn show(&self, context: &CommandContext<'_>, id: Uuid) -> Result {
        let found = context.client.get(&format!("{}/{id}", self.path), &[]).await;
        let nothing = format!("{id} was not found among {}", self.things);
        self.print_one(context, &found.map_err(|error| error.because(&nothing))?)
    }

    /// Prints one resource.
    pub(super) fn print_one(&self, context: &CommandContext<'_>, thing: &Value) -> Result {
        context.output.object(thing, &self.fields(thing))
    }

    /// The fields of one resource for people.
    pub(super) fn fields(&self, thing: &Value) -> Vec<(&'static str, String)> {
        let columns = self.columns.iter().chain(self.more);
        columns.map(|column| (column.title(), cell(thing, column.name))).collect()
    }
}

/// Member whose id a table for people replaces by the wallet's name.
const WALLET: &str = "wallet_id";

/// Names of wallets by id, for a table that a person reads.
pub(super) struct WalletNames(BTreeMap<String, String>);

impl WalletNames {
    /// Reads the newest wallets, if the table shows them. A wallet that is not among them keeps its id.
    pub(super) async fn read(context: &CommandContext<'_>, table: &Table) -> Self {
        if !table.is_drawn_with(WALLET) {
            return Self(BTreeMap::new());
        }
        match context.client.list("/wallets", &[], Some(NAMES_MAX)).await {
            Ok(wallets) => {
                let rows = wallets.rows.iter();
                Self(rows.map(|wallet| (text(wallet, "id"), text(wallet, "name"))).collect())
            }
            // The rows are there already: their ids are right, too.
            Err(error) => {
                note(&format!("the names of wallets were not read: {error}"));
                Self(BTreeMap::new())
            }
        }
    }

    /// Name of the wallet of a row, or its id.
    pub(super) fn of(&self, row: &Value) -> String {
        let id = text(row, WALLET);
        self.0.get(&id).cloned().unwrap_or(id)
    }
}

/// The parameters that have a value.
pub(super) fn given<'q>(query: Query<'q>) -> Vec<(&'q str, &'q str)> {
    query.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect()
}

/// A member for people.
fn cell(thing: &Value, name: &str) -> String {
    match member(thing, name) {
        _ if name.ends_with(MICROS) => amount(thing, name),
        Value::Object(rates) if name.starts_with(MICROS_BY_KIND) => {
            let amounts = by_kind(rates);
            if amounts.is_empty() { NOTHING.to_owned() } else { amounts.join(", ") }
        }
        // Parts are shown by their names: --json has all of them.
        Value::Array(parts) if parts.is_empty() => NOTHING.to_owned(),
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join(","),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Object(_) => text(thing, name),
    }
}

/// Amounts by kind of unit, those that are not zero.
fn by_kind(rates: &Map<String, Value>) -> Vec<String> {
    let amounts = rates.iter().filter(|(_kind, rate)| rate.as_i64() != Some(0));
    amounts
        .map(|(kind, rate)| match rate.as_i64() {
            Some(micros) => format!("{kind} {}", Micros::new(micros)),
            None => format!("{kind} {rate}"),
        })
        .collect()
}

/// Rates of prompts that are longer than a threshold.
fn tier(tier: &Value) -> Option<String> {
    let above = some_text(tier, "above_prompt_tokens")?;
    let rates = ["micros_per_million", "micros_each"].map(|name| member(tier, name).as_object());
    let amounts: Vec<_> = rates.into_iter().flatten().flat_map(by_kind).collect();
    Some(format!("above {above}: {}", amounts.join(" ")))
}

/// A part of a resource: its name, or the field that it is about.
fn part(part: &Value) -> String {
    if let Some(tier) = tier(part) {
        return tier;
    }
    if let (Some(node), Some(state)) = (some_text(part, "node"), some_text(part, "state")) {
        return format!("{node} {state}");
    }
    let named =
        ["name", "field", "sentence", "role"].into_iter().find_map(|name| some_text(part, name));
    named.or_else(|| part.as_str().map(str::to_owned)).unwrap_or_else(|| part.to_string())
}
