//! People compared with the audit log, a page by their numbers: their roles and the grantors, whether they have a
//! password and since when, and their link. A role without a grantor, or a link without a creator, is a way in for
//! an intruder.
//!
//! Addresses, names and passwords are never in the audit log, so no row shows whether they are the same. Sessions
//! are not there either. They give what a grant gives, and no right without it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::{ActorId, Person, PersonGrant, PersonLink, TrailFields as _, UseCase};
use holdfast_domain::{PersonId, Timestamp};

use super::tracked::{PAGE, TrackedResource, report_orphans};
use super::trail_record::bounds;
use super::{PageBounds, id};
use crate::audit::verify::{Subject, Verification};
use crate::reading::{ReadError, ReadTransaction};
use crate::rows::entity::person_grant::GrantRow;
use crate::rows::person::{self, LINK, LINK_TABLES};
use crate::rows::{BadRow, Cells, FromCells, Row};

/// Tables whose rows belong to a person.
const OF_PEOPLE: [&str; 7] = [
    "person_grants",
    "person_links",
    "person_wallet_links",
    "person_invitations",
    "person_passwords",
    "sessions",
    "browser_marks",
];

const PEOPLE: TrackedResource<Person> = TrackedResource {
    kind: "person",
    alias: "p",
    credentials: None,
    made: |person| (person.created_at, Some(person.created_by)),
    fields: |person, _told| person.trail_fields(),
    reports_unreadable: true,
    certain: None,
};

/// State of a person, by its rows or by the audit log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Standing {
    /// Authorities by their texts, each with the moment of the grant and the grantor.
    grants: BTreeMap<String, (Timestamp, Option<ActorId>)>,
    /// Moment at which the password was set, if there is one.
    password: Option<Timestamp>,
    /// Links by their ids.
    links: BTreeMap<String, LinkStanding>,
}

/// The last link of a person for the operators, or for a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LinkStanding {
    /// Authority that it gives; none if it only sets a password.
    offered: Option<String>,
    /// Micros of the moment at which it ends.
    expires_at: Option<String>,
    used_at: Option<Timestamp>,
    created_by: ActorId,
}

pub(super) async fn check(
    db: &ReadTransaction,
    bounds: PageBounds,
    found: &mut Verification,
) -> Result<Option<i64>, ReadError> {
    let page = PEOPLE.compare(db, [bounds.after, bounds.until], PAGE, found).await?;
    let mut standings = standings(db, &page.numbers, found).await?;
    for (person, rows) in &page.records {
        let standing = standings.remove(&person.id).unwrap_or_default();
        standing.compare(&Standing::of_audit_log(rows), Subject::Person(person.id), found);
    }
    if page.last.is_none() {
        for table in OF_PEOPLE {
            let of_nobody = "NOT EXISTS (SELECT 1 FROM people AS p WHERE p.id = t.person_id)";
            let sentence = format!("{} have no owner", table.replace('_', " "));
            report_orphans(db, (table, of_nobody), &sentence, found).await?;
        }
    }
    Ok(page.last)
}

/// States of the people with these numbers, by their rows.
async fn standings(
    db: &ReadTransaction,
    numbers: &RangeInclusive<i64>,
    found: &mut Verification,
) -> Result<BTreeMap<PersonId, Standing>, ReadError> {
    let of_people = |columns: &str, table: &str, alias: &str| {
        format!(
            "SELECT {columns} FROM people AS p CROSS JOIN {table} AS {alias}
             WHERE p.seq >= $1 AND p.seq <= $2 AND {alias}.person_id = p.id"
        )
    };
    let mut all: BTreeMap<PersonId, Standing> = BTreeMap::new();
    for row in
        db.query(&of_people(GrantRow::COLUMNS, "person_grants", "g"), bounds(numbers)).await?
    {
        match GrantRow::from_cells(&mut Cells::new(&row)) {
            Ok((person, PersonGrant { authority, granted_at, granted_by })) => {
                let grants = &mut all.entry(person).or_default().grants;
                grants.insert(authority.to_string(), (granted_at, Some(granted_by)));
            }
            Err(error) => {
                found.unreadable(Subject::Person(id(&row, 0, PersonId::from_bytes)?), &error);
            }
        }
    }
    for table in LINK_TABLES {
        for row in db.query(&of_people(LINK, table, "l"), bounds(numbers)).await? {
            match person::link(&mut Cells::new(&row)) {
                Ok(link) => {
                    let links = &mut all.entry(link.person).or_default().links;
                    links.insert(link.id.to_string(), LinkStanding::of(&link));
                }
                Err(error) => {
                    found.unreadable(Subject::Person(id(&row, 1, PersonId::from_bytes)?), &error);
                }
            }
        }
    }
    let columns = "w.person_id, w.set_at";
    for row in db.query(&of_people(columns, "person_passwords", "w"), bounds(numbers)).await? {
        let mut cells = Cells::new(&row);
        let mut read = || Ok::<_, BadRow>((cells.bytes()?, cells.timestamp()?));
        let (person, set_at) = read().map_err(ReadError::Row)?;
        all.entry(PersonId::from_bytes(person)).or_default().password = Some(set_at);
    }
    Ok(all)
}

impl LinkStanding {
    fn of(link: &PersonLink) -> Self {
        Self {
            offered: link.purpose.authority().map(|authority| authority.to_string()),
            expires_at: Some(link.expires_at.as_micros().to_string()),
            used_at: link.used_at,
            created_by: link.created_by,
        }
    }

    fn sets_password(&self) -> bool {
        self.offered.is_none() && self.used_at.is_none()
    }
}

impl Standing {
    /// State of one person, by the rows of the audit log.
    fn of_audit_log(rows: &[TrailRow]) -> Self {
        let (mut standing, mut places) = (Self::default(), LinkPlaces::default());
        for row in rows {
            standing.follow(row, &mut places);
        }
        standing
    }

    fn follow(&mut self, row: &TrailRow, places: &mut LinkPlaces) {
        let after = |field: &str| {
            let change = row.changes.iter().find(|change| change.field == field);
            change.and_then(|change| change.after.clone())
        };
        if let Some(id) = after("link_id") {
            let (offered, used_at, created_by) = (after("offered"), None, row.actor);
            let replaced = places.put(&id, offered.as_deref(), after("link_reach").as_deref());
            replaced.into_iter().for_each(|id| drop(self.links.remove(&id)));
            let expires_at = after("link_expires_at");
            self.links.insert(id, LinkStanding { offered, expires_at, used_at, created_by });
        }
        let used = after("link_used");
        for change in &row.changes {
            match (change.field.as_str(), &change.before, &change.after) {
                ("link_used", _, Some(id)) => {
                    if let Some(link) = self.links.get_mut(id) {
                        link.used_at = Some(row.at);
                    }
                }
                ("grant", _, Some(authority)) => {
                    let giver = used.as_ref().and_then(|id| self.links.get(id));
                    let giver = giver.map(|link| link.created_by);
                    self.grants.insert(authority.clone(), (row.at, giver));
                }
                ("grant", Some(authority), None) => self.end_grant(authority),
                ("offered", Some(ended), None) => self.links.retain(|_id, link| {
                    link.used_at.is_some() || link.offered.as_ref() != Some(ended)
                }),
                ("link_ended", Some(id), None) => drop(self.links.remove(id)),
                ("ended_at", _, Some(_)) => self.links.clear(),
                // Its value is never recorded: the use case shows whether there is one now.
                ("password", _, _) => {
                    let is_set =
                        [UseCase::PersonAccept, UseCase::PersonPassword].contains(&row.use_case);
                    self.password = is_set.then_some(row.at);
                }
                (_, _, _) => {}
            }
        }
    }

    /// The last grant takes links along that set a password.
    fn end_grant(&mut self, authority: &str) {
        self.grants.remove(authority);
        if self.grants.is_empty() {
            self.links.retain(|_id, link| !link.sets_password());
        }
    }

    /// Compares the state by rows with the state by the audit log.
    fn compare(&self, logged: &Self, subject: Subject, found: &mut Verification) {
        for (authority, (at, by)) in &self.grants {
            match logged.grants.get(authority) {
                None => {
                    found.report(
                        subject,
                        format!("no row of the audit log gave it the role {authority}"),
                    );
                }
                Some(same) if same == &(*at, *by) => {}
                Some(other) => {
                    let [given, logged] = [&(*at, *by), other].map(render_giving);
                    let sentence = format!(
                        "it has had the role {authority} {given}, the audit log has {logged}"
                    );
                    found.report(subject, sentence);
                }
            }
        }
        for authority in logged.grants.keys().filter(|it| !self.grants.contains_key(*it)) {
            found.report(
                subject,
                format!("its role {authority} is gone, the audit log never ended it"),
            );
        }
        if self.password != logged.password {
            let [set, logged] = [self.password, logged.password]
                .map(|at| at.map_or_else(|| "never".to_owned(), |at| at.as_micros().to_string()));
            let sentence = format!("its password was set at {set}, the audit log has {logged}");
            found.report(subject, sentence);
        }
        for (id, link) in &self.links {
            if logged.links.get(id) != Some(link) {
                found.report(subject, format!("its link {id} is not as the audit log has it"));
            }
        }
        for id in logged.links.keys().filter(|id| !self.links.contains_key(*id)) {
            found.report(subject, format!("its link {id} is gone"));
        }
    }
}

/// Places of a person's links, by id: a link takes the place of the one before there.
#[derive(Debug, Default)]
struct LinkPlaces {
    /// The link in `person_links`, and its wallet if a version before has put it there.
    common: Option<(String, Option<String>)>,
    /// Links in `person_wallet_links`, by wallet.
    of_wallets: BTreeMap<String, String>,
}

impl LinkPlaces {
    /// Puts a link to its place, and returns those whose places are taken.
    fn put(&mut self, id: &str, offered: Option<&str>, reach: Option<&str>) -> Vec<String> {
        let wallet = offered.and_then(|offered| offered.split_once(':')).map(|(_role, id)| id);
        let Some(reach) = reach else {
            let before = self.common.replace((id.to_owned(), wallet.map(str::to_owned)));
            return before.into_iter().map(|(id, _wallet)| id).collect();
        };
        let mut replaced = Vec::new();
        // As a link of a wallet is moved before another one is put.
        if let Some((moved, wallet)) = self.common.take() {
            match wallet {
                Some(wallet) => replaced.extend(self.of_wallets.insert(wallet, moved)),
                None => self.common = Some((moved, None)),
            }
        }
        if reach == "all" {
            let before = self.common.replace((id.to_owned(), None));
            replaced.extend(before.map(|(id, _wallet)| id));
        } else {
            replaced.extend(self.of_wallets.insert(reach.to_owned(), id.to_owned()));
        }
        replaced
    }
}

fn render_giving((at, by): &(Timestamp, Option<ActorId>)) -> String {
    let by = by.map_or_else(|| "nobody".to_owned(), |by| by.to_string());
    format!("since {} by {by}", at.as_micros())
}
