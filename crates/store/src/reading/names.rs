//! Names by ids: one statement for each kind of resource and [`IDS_AT_ONCE`] ids.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::WalletId;
use holdfast_domain::admin::ResourceId;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect, QueryTrait};

use super::{ReadError, ReadTransaction};
use crate::rows::entity::{admin_key, api_key, person, wallet};

/// Ids of one statement.
const IDS_AT_ONCE: usize = 500;

/// Names of wallets, API keys and admin keys, and e-mail addresses of people. With a wallet, only that wallet
/// and its API keys.
pub(super) async fn names(
    db: &ReadTransaction,
    things: BTreeSet<ResourceId>,
    of: Option<WalletId>,
) -> Result<BTreeMap<ResourceId, String>, ReadError> {
    let ids = |kind: fn(&ResourceId) -> bool| -> Vec<[u8; 16]> {
        things.iter().filter(|thing| kind(thing)).map(|thing| thing.id()).collect()
    };
    let wallets = ids(|thing| matches!(thing, ResourceId::Wallet(_)));
    let api_keys = ids(|thing| matches!(thing, ResourceId::ApiKey(_)));
    let admin_keys = ids(|thing| matches!(thing, ResourceId::AdminKey(_)));
    let people = ids(|thing| matches!(thing, ResourceId::Person(_)));
    let id = of.map(|id| id.to_bytes().to_vec());
    let all = Condition::all;
    let own = id.clone().map_or_else(all, |id| all().add(wallet::Column::Id.eq(id)));
    let columns = [wallet::Column::Id, wallet::Column::Name];
    let mut named = of_kind::<wallet::Entity>(db, columns, &wallets, own).await?;
    let own = id.map_or_else(all, |id| all().add(api_key::Column::WalletId.eq(id)));
    let columns = [api_key::Column::Id, api_key::Column::Name];
    named.extend(of_kind::<api_key::Entity>(db, columns, &api_keys, own).await?);
    if of.is_none() {
        let columns = [admin_key::Column::Id, admin_key::Column::Name];
        named.extend(of_kind::<admin_key::Entity>(db, columns, &admin_keys, all()).await?);
        let columns = [person::Column::Id, person::Column::Email];
        named.extend(of_kind::<person::Entity>(db, columns, &people, all()).await?);
    }
    let name = |thing: ResourceId| Some((thing, named.get(&thing.id())?.clone()));
    Ok(things.into_iter().filter_map(name).collect())
}

/// Names of the rows with these ids, by id. A row without a name is left out.
pub(super) async fn of_kind<E: EntityTrait>(
    db: &ReadTransaction,
    [id, name]: [E::Column; 2],
    ids: &[[u8; 16]],
    within: Condition,
) -> Result<BTreeMap<[u8; 16], String>, ReadError> {
    let mut names = BTreeMap::new();
    for ids in ids.chunks(IDS_AT_ONCE) {
        let some = E::find().select_only().columns([id, name]).filter(within.clone());
        let some = some.filter(id.is_in(ids.iter().map(|id| id.to_vec())));
        let some = some.filter(name.is_not_null());
        names.extend(db.select::<([u8; 16], String)>(some.as_query()).await?);
    }
    Ok(names)
}
