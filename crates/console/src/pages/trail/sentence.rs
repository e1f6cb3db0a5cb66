//! Sentences of the audit log: an entry as people read it, with names, decimal amounts and moments.
//!
//! The table is the template, a line for each use case. It has no line for the rest, so that a new use case without a
//! sentence does not compile. A row of an older version may lack a field: its part of the sentence is left out.
//!
//! Never: the beginning of an id, or an amount in micros. Raw values are folded below the sentence.

use std::collections::BTreeMap;
use std::fmt;

use askama::Template;
use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::listing::TrailListing;
use holdfast_domain::admin::{ActorId, FieldChange, ResourceId, UseCase};
use holdfast_domain::{Currency, Micros, Timestamp, WalletId};
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::moment::second;
use crate::kit::{Cell, Visit, Visitor, exact, money, noun};
use crate::pages::parts::reference::{Names, linked, to_wallet};

const WALLET: &str = "wallet_id";
const AMOUNT: &str = "amount_micros";
/// Most characters of a value in a sentence: a list of models may be long.
const CHARS: usize = 60;

/// Names and currencies of the rows of a page.
#[derive(Debug)]
pub(super) struct Subjects<'v> {
    visitor: &'v Visitor,
    names: Names<'v>,
    /// Currency of each wallet, and of each other target with an amount.
    currencies: BTreeMap<ResourceId, Currency>,
}

impl<'v> Subjects<'v> {
    pub(super) async fn read(visit: &'v Visit, rows: &[TrailListing]) -> Result<Self, Failure> {
        let resources = rows.iter().flat_map(|TrailListing { row, .. }| {
            let wallets = row.changes.iter().flat_map(wallets_of).map(ResourceId::Wallet);
            [Some(row.thing), actor_resource(row.actor)].into_iter().flatten().chain(wallets)
        });
        let names = Names::read(visit, resources.collect::<Vec<_>>()).await?;
        let mut subjects = Self { visitor: &visit.visitor, names, currencies: BTreeMap::new() };
        for TrailListing { row, .. } in rows {
            subjects.read_currency(visit, row).await?;
        }
        Ok(subjects)
    }

    /// Reads the currency of a row with an amount, once for each wallet.
    async fn read_currency(&mut self, visit: &Visit, row: &TrailRow) -> Result<(), Failure> {
        let has_amount = row.changes.iter().any(|change| change.field.ends_with("_micros"));
        if !has_amount || self.currencies.contains_key(&row.thing) {
            return Ok(());
        }
        let (accounts, principal) = (visit.accounts(), visit.principal());
        let wallet = match (row.thing, value(row, WALLET).and_then(|id| id.parse().ok())) {
            (ResourceId::Wallet(id), _) | (_, Some(id)) => Some(id),
            (ResourceId::ApiKey(id), None) => {
                let reference = Reference::Id(Uuid::from_bytes(id.to_bytes()));
                let found = accounts.api_key(principal, &reference, None).await;
                if_there(found)?.map(|record| record.api_key.wallet)
            }
            (_, None) => None,
        };
        let Some(wallet) = wallet else { return Ok(()) };
        let known = self.currencies.get(&ResourceId::Wallet(wallet)).copied();
        let currency = match known {
            Some(currency) => Some(currency),
            None => if_there(accounts.wallet(principal, &to_wallet(wallet)).await)?
                .map(|record| record.wallet.currency),
        };
        if let Some(currency) = currency {
            self.currencies.extend([(row.thing, currency), (ResourceId::Wallet(wallet), currency)]);
        }
        Ok(())
    }

    /// Name of a resource, or its whole id; a link for a visitor who may read it.
    fn link(&self, thing: ResourceId) -> Cell {
        let id = || match thing {
            ResourceId::Unknown => "an unknown address".to_owned(),
            ResourceId::Person(id) => format!("person {id}"),
            ResourceId::Wallet(_)
            | ResourceId::ApiKey(_)
            | ResourceId::Posting(_)
            | ResourceId::Operation(_)
            | ResourceId::AdminKey(_)
            | ResourceId::Webhook(_)
            | ResourceId::Job(_) => Uuid::from_bytes(thing.id()).to_string(),
        };
        let text = self.names.get(thing).map_or_else(id, str::to_owned);
        linked(text, thing, self.visitor)
    }

    /// The actor, as it begins a sentence.
    fn actor(&self, actor: ActorId) -> Cell {
        let Some(resource) = actor_resource(actor) else {
            let is_local = actor == ActorId::Local;
            return Cell::text(if is_local { "The command line" } else { "An unknown client" });
        };
        // The address of a person needs no noun before it.
        match self.names.get(resource).filter(|_| matches!(actor, ActorId::Person(_))) {
            Some(_) => self.names.link(resource),
            None => linked(self.names.described(resource), resource, self.visitor),
        }
    }
}

/// Result of a read, or none for a resource that is not there.
fn if_there<T>(found: Result<T, AccountsError>) -> Result<Option<T>, Failure> {
    match found {
        Ok(record) => Ok(Some(record)),
        Err(AccountsError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

const fn actor_resource(actor: ActorId) -> Option<ResourceId> {
    match actor {
        ActorId::Local | ActorId::Anonymous => None,
        ActorId::AdminKey(id) => Some(ResourceId::AdminKey(id)),
        ActorId::Person(id) => Some(ResourceId::Person(id)),
    }
}

/// Wallets in the values of a change: the one that it names, or that a role is for.
fn wallets_of(change: &FieldChange) -> impl Iterator<Item = WalletId> {
    let values = [&change.before, &change.after].into_iter().flatten();
    let id = |value: &String| value.rsplit(':').next().and_then(|id| id.parse().ok());
    let names_wallet = [WALLET, "grant", "offered"].contains(&change.field.as_str());
    values.filter_map(id).filter(move |_| names_wallet).collect::<Vec<_>>().into_iter()
}

fn value<'a>(row: &'a TrailRow, field: &str) -> Option<&'a str> {
    let change = row.changes.iter().find(|change| change.field == field)?;
    change.after.as_deref()
}

/// Sentence of a row.
#[derive(Debug, Template)]
#[template(path = "pages/trail_sentence.html")]
pub(super) struct Sentence<'a> {
    row: &'a TrailRow,
    actor: Cell,
    subjects: &'a Subjects<'a>,
}

impl<'a> Sentence<'a> {
    pub(super) fn new(row: &'a TrailRow, subjects: &'a Subjects<'a>) -> Self {
        Self { row, actor: subjects.actor(row.actor), subjects }
    }

    fn target(&self) -> Cell {
        self.subjects.link(self.row.thing)
    }

    fn after(&self, field: &str) -> Option<&str> {
        value(self.row, field)
    }

    fn before(&self, field: &str) -> Option<&str> {
        let change = self.row.changes.iter().find(|change| change.field == field)?;
        change.before.as_deref()
    }

    /// The wallet that the row names.
    fn wallet(&self) -> Cell {
        let id = self.after(WALLET).and_then(|id| id.parse().ok());
        id.map_or(Cell::text("a wallet"), |id| self.subjects.link(ResourceId::Wallet(id)))
    }

    /// Wallet of a read, or all of them.
    fn extent(&self) -> Cell {
        match self.row.thing {
            ResourceId::Wallet(_) => self.target(),
            ResourceId::ApiKey(_)
            | ResourceId::Posting(_)
            | ResourceId::Operation(_)
            | ResourceId::AdminKey(_)
            | ResourceId::Person(_)
            | ResourceId::Webhook(_)
            | ResourceId::Job(_)
            | ResourceId::Unknown => Cell::text("all wallets"),
        }
    }

    /// Amount of a payment, with a link to it.
    fn amount(&self) -> Cell {
        let amount = self.after(AMOUNT).map(|amount| self.readable(AMOUNT, amount));
        let text = amount.unwrap_or_else(|| noun(self.row.thing).to_owned());
        linked(text, self.row.thing, self.subjects.visitor)
    }

    /// A role, with the name of its wallet.
    fn authority(&self, label: &str) -> String {
        let Some((role, wallet)) = label.split_once(':') else { return label.to_owned() };
        format!("{role} of {}", self.readable(WALLET, wallet))
    }

    /// A value as people read it.
    fn readable(&self, field: &str, value: &str) -> String {
        let text = match value.parse::<i64>() {
            Ok(number) if field.ends_with("_micros") => {
                let (amount, thing) = (Micros::new(number), self.row.thing);
                let currency = self.subjects.currencies.get(&thing);
                currency.map_or_else(|| exact(amount), |currency| money(amount, *currency))
            }
            Ok(number) if field.ends_with("_at") => second(Timestamp::from_micros(number)),
            // Not a number, or one that counts: an id of a wallet has its name.
            Ok(_) | Err(_) => {
                let wallet = value.parse().ok().map(ResourceId::Wallet);
                let name = wallet.and_then(|wallet| self.subjects.names.get(wallet));
                name.unwrap_or(value).to_owned()
            }
        };
        match text.char_indices().nth(CHARS) {
            Some((end, _)) => text.chars().take(end).chain(['…']).collect(),
            None => text,
        }
    }

    /// All changes of the row, for a resource that was there before.
    fn changes(&self) -> impl fmt::Display {
        let change = |FieldChange { field, before, after }: &FieldChange| {
            let side = |value: &Option<String>| {
                value.as_ref().map_or_else(|| "none".to_owned(), |it| self.readable(field, it))
            };
            let name = field.trim_end_matches("_micros").replace('_', " ");
            (name, side(before), side(after))
        };
        Changes { changes: self.row.changes.iter().map(change).collect() }
    }
}

/// Changes of members, each with its value before and after.
#[derive(Debug, Template)]
#[template(
    source = "{% for (name, before, after) in changes %}{% if loop.first %}: {% else %}, {% endif %}\
        {{ name }} <bdi>{{ before }}</bdi> → <bdi>{{ after }}</bdi>{% endfor %}",
    ext = "html"
)]
struct Changes {
    changes: Vec<(String, String, String)>,
}

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::{Reach, Role};
    use holdfast_domain::secret::ServerSecret;
    use holdfast_domain::{CommandKey, PersonId, PostingId, WebhookId};

    use super::*;
    use crate::tests::world::visitor;

    const ADA: PersonId = PersonId::from_u128(1);
    const ACME: WalletId = WalletId::from_u128(2);

    fn row(use_case: UseCase, thing: ResourceId, changes: &[(&str, &str, &str)]) -> TrailRow {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let change = |(field, before, after): &(&str, &str, &str)| FieldChange {
            field: (*field).to_owned(),
            before: some(before),
            after: some(after),
        };
        TrailRow {
            seq: 1,
            at: Timestamp::from_micros(0),
            actor: ActorId::Person(ADA),
            use_case,
            thing,
            request_key: CommandKey::from_u128(1),
            digest: [0; 32],
            changes: changes.iter().map(change).collect(),
            reason: None,
            server_secret: ServerSecret::new(b"a secret of the operator").unwrap().id(),
            mac: [0; 32],
        }
    }

    fn sentence(row: &TrailRow) -> String {
        let visitor = visitor(Role::Owner, Reach::All);
        let named = [(ResourceId::Person(ADA), "ada@x.y"), (ResourceId::Wallet(ACME), "acme")];
        let names = named.map(|(thing, name)| (thing, name.to_owned())).into();
        let names = Names::new(&visitor, names);
        let currencies = [(row.thing, Currency::USD)].into();
        let subjects = Subjects { visitor: &visitor, names, currencies };
        let html = Sentence::new(row, &subjects).to_string();
        let pieces = html.split('<').map(|it| it.split_once('>').map_or(it, |(_, text)| text));
        pieces.collect()
    }

    #[test]
    fn every_use_case_has_a_sentence_without_its_fields() {
        for use_case in UseCase::ALL {
            let text = sentence(&row(*use_case, ResourceId::Wallet(ACME), &[]));
            let is_whole = text.starts_with("ada@x.y ") || text.starts_with("Failed sign-ins of ");
            assert!(is_whole && text.split(' ').count() >= 3, "{use_case}: {text}");
            assert!(!text.contains("  ") && !text.ends_with(' '), "{use_case}: {text}");
        }
    }

    #[test]
    fn roles_amounts_and_moments_are_readable() {
        let wallet = ACME.to_string();
        let (person, acme) = (ResourceId::Person(ADA), ResourceId::Wallet(ACME));
        let posting = ResourceId::Posting(PostingId::from_u128(3));
        let admin = format!("holder_admin:{wallet}");
        let webhook = ResourceId::Webhook(WebhookId::from_u128(4));
        let paid = [("amount_micros", "", "-2500000"), ("wallet_id", "", &*wallet)];
        let id = "00000000-0000-0000-0000-000000000004";
        for (use_case, thing, changes, expected) in [
            (
                UseCase::PostingAdjust,
                posting,
                &paid[..],
                "adjusted the balance of acme by -2.50 USD",
            ),
            (
                UseCase::PersonInvite,
                person,
                &[("offered", "", &*admin)],
                "invited ada@x.y as holder_admin of acme",
            ),
            (
                UseCase::PersonEnd,
                person,
                &[("grant", "support", "")],
                "ended the role support of ada@x.y",
            ),
            (
                UseCase::PersonEnd,
                person,
                &[("ended_at", "", "1"), ("grant", "support", "")],
                "ended all access of ada@x.y",
            ),
            (UseCase::PersonAccept, person, &[("grant", "", "owner")], "accepted the role owner"),
            (
                UseCase::WalletUpdate,
                acme,
                &[("name", "old", "acme"), ("low_balance_micros", "5", "")],
                "changed wallet acme: name old → acme, low balance 0.000005 USD → none",
            ),
            (UseCase::WebhookDisable, webhook, &[], &*format!("disabled webhook {id}")),
            (UseCase::UsageRead, person, &[], "read the usage of all wallets"),
            (
                UseCase::ApiKeyRotate,
                acme,
                &[("others_end_at", "", "0")],
                "rotated API key acme, other credentials end 1970-01-01 00:00:00 UTC",
            ),
        ] {
            assert_eq!(sentence(&row(use_case, thing, changes)), format!("ada@x.y {expected}"));
        }
    }
}
