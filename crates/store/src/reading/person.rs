//! People with all that belongs to them, but their passwords.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::account::{Person, PersonGrant, PersonLink, PersonRecord, PersonState, Role};
use holdfast_domain::listing::{Page, PageRequest, PersonFilter};
use holdfast_domain::{PersonId, WalletId};
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QueryTrait};

use super::page::page;
use super::row::FromCells;
use super::{ReadError, ReadTransaction};
use crate::entity::{person, person_grant, person_link, person_password};
use crate::rows::{self, BadRow, Cells};

impl FromCells for Person {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        rows::person::person(cells)
    }
}

impl FromCells for (PersonId, PersonGrant) {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        // The number, by which they are ordered.
        cells.skip(1);
        rows::person::grant(cells)
    }
}

impl FromCells for PersonLink {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        rows::person::link(cells)
    }
}

impl FromCells for PersonId {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self::from_bytes(cells.bytes()?))
    }
}

pub(super) async fn people(
    db: &ReadTransaction,
    PersonFilter { wallet, role, state }: PersonFilter,
    request: PageRequest,
) -> Result<Page<PersonRecord>, ReadError> {
    let mut people = person::Entity::find();
    if wallet.is_some() || role.is_some() {
        people = people.filter(has_or_is_offered(wallet, role));
    }
    if let Some(state) = state {
        people = people.filter(is_in(state));
    }
    let found: Page<Person> = page(db, people, person::Column::Seq, request).await?;
    let Page { rows, next, places } = found;
    Ok(Page { rows: records(db, rows).await?, next, places })
}

/// Somebody has this role there, or a link offers it that nobody has used.
fn has_or_is_offered(wallet: Option<WalletId>, role: Option<Role>) -> Condition {
    let wallet = wallet.map(|id| id.to_bytes().to_vec());
    let granted = Query::select()
        .column(person_grant::Column::PersonId)
        .from(person_grant::Entity)
        .and_where_option(wallet.clone().map(|id| person_grant::Column::WalletId.eq(id)))
        .and_where_option(role.map(|role| person_grant::Column::Role.eq(role.label())))
        .take();
    let offered = Query::select()
        .column(person_link::Column::PersonId)
        .from(person_link::Entity)
        .and_where(person_link::Column::UsedAt.is_null())
        .and_where_option(wallet.map(|id| person_link::Column::WalletId.eq(id)))
        .and_where_option(role.map(|role| person_link::Column::Role.eq(role.label())))
        .take();
    Condition::any()
        .add(person::Column::Id.in_subquery(granted))
        .add(person::Column::Id.in_subquery(offered))
}

/// The condition of [`PersonRecord::state`].
fn is_in(state: PersonState) -> Condition {
    let passwords = Query::select()
        .column(person_password::Column::PersonId)
        .from(person_password::Entity)
        .take();
    let goes_on = Condition::all().add(person::Column::EndedAt.is_null());
    match state {
        PersonState::Pending => goes_on.add(person::Column::Id.not_in_subquery(passwords)),
        PersonState::Active => goes_on.add(person::Column::Id.in_subquery(passwords)),
        PersonState::Ended => Condition::all().add(person::Column::EndedAt.is_not_null()),
    }
}

pub(super) async fn person(
    db: &ReadTransaction,
    id: PersonId,
) -> Result<Option<PersonRecord>, ReadError> {
    let of_id = person::Entity::find().filter(person::Column::Id.eq(id.to_bytes().to_vec()));
    let found: Vec<(i64, Person)> = db.select(of_id.as_query()).await?;
    let people = found.into_iter().map(|(_, person)| person).collect();
    Ok(records(db, people).await?.into_iter().next())
}

/// These people with all that they have, as it stands in the same moment.
async fn records(
    db: &ReadTransaction,
    people: Vec<Person>,
) -> Result<Vec<PersonRecord>, ReadError> {
    let ids: Vec<Vec<u8>> = people.iter().map(|person| person.id.to_bytes().to_vec()).collect();
    let grants = person_grant::Entity::find()
        .filter(person_grant::Column::PersonId.is_in(ids.clone()))
        .order_by_asc(person_grant::Column::Seq);
    let grants: Vec<(PersonId, PersonGrant)> = db.select(grants.as_query()).await?;
    let links =
        person_link::Entity::find().filter(person_link::Column::PersonId.is_in(ids.clone()));
    let links: Vec<PersonLink> = db.select(links.as_query()).await?;
    let passwords =
        person_password::Entity::find().filter(person_password::Column::PersonId.is_in(ids));
    let passwords: Vec<PersonId> = db.select(passwords.as_query()).await?;
    let passwords: BTreeSet<_> = passwords.into_iter().collect();
    let mut links: BTreeMap<_, _> = links.into_iter().map(|link| (link.person, link)).collect();
    let mut grants_of: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (person, grant) in grants {
        grants_of.entry(person).or_default().push(grant);
    }
    let record = |person: Person| PersonRecord {
        grants: grants_of.remove(&person.id).unwrap_or_default(),
        has_password: passwords.contains(&person.id),
        link: links.remove(&person.id),
        person,
    };
    Ok(people.into_iter().map(record).collect())
}
