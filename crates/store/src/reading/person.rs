//! People with all that belongs to them, but their passwords.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::admin::listing::{Page, PageRequest, PersonFilter};
use holdfast_domain::admin::{
    Person, PersonInvitation, PersonLink, PersonRecord, PersonState, Role,
};
use holdfast_domain::{PersonId, WalletId};
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QueryTrait};

use super::page::page;
use super::{ReadError, ReadTransaction};
use crate::rows::entity::person_grant::GrantRow;
use crate::rows::entity::{
    person, person_grant, person_invitation, person_link, person_password, person_wallet_link,
};
use crate::rows::{self, BadRow, Cells, FromCells};

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
    PersonFilter { wallet, role, state, seen_from }: PersonFilter,
    request: PageRequest,
) -> Result<Page<PersonRecord>, ReadError> {
    let mut people = person::Entity::find();
    if wallet.is_some() || role.is_some() {
        people = people.filter(has_or_is_offered(wallet, role));
    }
    if let Some(state) = state {
        people = people.filter(is_in(state, seen_from));
    }
    let found: Page<Person> = page(db, people, person::Column::Seq, request).await?;
    let Page { rows, next, places } = found;
    Ok(Page { rows: records(db, rows).await?, next, places })
}

/// Condition: a person has this role there, or an unused link offers it.
fn has_or_is_offered(wallet: Option<WalletId>, role: Option<Role>) -> Condition {
    let wallet = wallet.map(|id| id.to_bytes().to_vec());
    let granted = Query::select()
        .column(person_grant::Column::PersonId)
        .from(person_grant::Entity)
        .and_where_option(wallet.clone().map(|id| person_grant::Column::WalletId.eq(id)))
        .and_where_option(role.map(|role| person_grant::Column::Role.eq(role.label())))
        .take();
    let mut of_operators = Query::select();
    let of_operators = of_operators
        .column(person_link::Column::PersonId)
        .from(person_link::Entity)
        .and_where(person_link::Column::UsedAt.is_null())
        .and_where_option(wallet.clone().map(|id| person_link::Column::WalletId.eq(id)))
        .and_where_option(role.map(|role| person_link::Column::Role.eq(role.label())));
    let mut of_wallets = Query::select();
    let of_wallets = of_wallets
        .column(person_wallet_link::Column::PersonId)
        .from(person_wallet_link::Entity)
        .and_where(person_wallet_link::Column::UsedAt.is_null())
        .and_where_option(wallet.map(|id| person_wallet_link::Column::WalletId.eq(id)))
        .and_where_option(role.map(|role| person_wallet_link::Column::Role.eq(role.label())));
    Condition::any()
        .add(person::Column::Id.in_subquery(granted))
        .add(person::Column::Id.in_subquery(of_operators.take()))
        .add(person::Column::Id.in_subquery(of_wallets.take()))
}

/// The condition of [`PersonRecord::state`]. For the holder of a wallet a person without a grant there is pending.
fn is_in(state: PersonState, seen_from: Option<WalletId>) -> Condition {
    let passwords = || {
        Query::select()
            .column(person_password::Column::PersonId)
            .from(person_password::Entity)
            .take()
    };
    let grants = seen_from.map(|wallet| {
        Query::select()
            .column(person_grant::Column::PersonId)
            .from(person_grant::Entity)
            .and_where(person_grant::Column::WalletId.eq(wallet.to_bytes().to_vec()))
            .take()
    });
    let goes_on = Condition::all().add(person::Column::EndedAt.is_null());
    match state {
        PersonState::Pending => {
            let mut pending = Condition::any().add(person::Column::Id.not_in_subquery(passwords()));
            if let Some(grants) = grants {
                pending = pending.add(person::Column::Id.not_in_subquery(grants));
            }
            goes_on.add(pending)
        }
        PersonState::Active => {
            let active = goes_on.add(person::Column::Id.in_subquery(passwords()));
            match grants {
                Some(grants) => active.add(person::Column::Id.in_subquery(grants)),
                None => active,
            }
        }
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

/// These people with their grants, links and passwords, as of the same moment.
async fn records(
    db: &ReadTransaction,
    people: Vec<Person>,
) -> Result<Vec<PersonRecord>, ReadError> {
    let ids: Vec<Vec<u8>> = people.iter().map(|person| person.id.to_bytes().to_vec()).collect();
    let grants = person_grant::Entity::find()
        .filter(person_grant::Column::PersonId.is_in(ids.clone()))
        .order_by_asc(person_grant::Column::Seq);
    let grants: Vec<(i64, GrantRow)> = db.select(grants.as_query()).await?;
    let of_operators =
        person_link::Entity::find().filter(person_link::Column::PersonId.is_in(ids.clone()));
    let mut links: Vec<PersonLink> = db.select(of_operators.as_query()).await?;
    let of_wallets = person_wallet_link::Entity::find()
        .filter(person_wallet_link::Column::PersonId.is_in(ids.clone()));
    let of_wallets: Vec<PersonLink> = db.select(of_wallets.as_query()).await?;
    links.extend(of_wallets);
    let invitations = person_invitation::Entity::find()
        .filter(person_invitation::Column::PersonId.is_in(ids.clone()));
    let invitations: Vec<(PersonId, PersonInvitation)> = db.select(invitations.as_query()).await?;
    let passwords =
        person_password::Entity::find().filter(person_password::Column::PersonId.is_in(ids));
    let passwords: Vec<PersonId> = db.select(passwords.as_query()).await?;
    let passwords: BTreeSet<_> = passwords.into_iter().collect();
    let mut links_of: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for link in links {
        rows::person::add_link(links_of.entry(link.person).or_default(), link);
    }
    let mut grants_of: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (_seq, (person, grant)) in grants {
        grants_of.entry(person).or_default().push(grant);
    }
    let mut invitations_of: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (person, invitation) in invitations {
        invitations_of.entry(person).or_default().push(invitation);
    }
    let record = |person: Person| PersonRecord {
        grants: grants_of.remove(&person.id).unwrap_or_default(),
        has_password: passwords.contains(&person.id),
        links: links_of.remove(&person.id).unwrap_or_default(),
        invitations: invitations_of.remove(&person.id).unwrap_or_default(),
        person,
    };
    Ok(people.into_iter().map(record).collect())
}
