//! People with all that belongs to them, but their passwords.

use holdfast_domain::PersonId;
use holdfast_domain::account::{Person, PersonGrant, PersonLink, PersonRecord, Reach};
use holdfast_domain::listing::{Page, PageRequest};
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
    reach: Reach,
    request: PageRequest,
) -> Result<Page<PersonRecord>, ReadError> {
    let wallet = match reach {
        Reach::All => None,
        Reach::Wallet(wallet) => Some(wallet.to_bytes().to_vec()),
    };
    let people = person::Entity::find().apply_if(wallet, |people, wallet| {
        let granted = Query::select()
            .column(person_grant::Column::PersonId)
            .from(person_grant::Entity)
            .and_where(person_grant::Column::WalletId.eq(wallet.clone()))
            .take();
        let offered = Query::select()
            .column(person_link::Column::PersonId)
            .from(person_link::Entity)
            .and_where(person_link::Column::WalletId.eq(wallet))
            .and_where(person_link::Column::UsedAt.is_null())
            .take();
        let either = Condition::any()
            .add(person::Column::Id.in_subquery(granted))
            .add(person::Column::Id.in_subquery(offered));
        people.filter(either)
    });
    let found: Page<Person> = page(db, people, person::Column::Seq, request).await?;
    Ok(Page { rows: records(db, found.rows).await?, next: found.next })
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
    let record = |person: Person| {
        let id = person.id;
        let own = grants.iter().filter(|(of, _)| *of == id).map(|(_, grant)| *grant);
        PersonRecord {
            grants: own.collect(),
            has_password: passwords.contains(&id),
            link: links.iter().find(|link| link.person == id).cloned(),
            person,
        }
    };
    Ok(people.into_iter().map(record).collect())
}
