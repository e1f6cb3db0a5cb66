//! Search: resources by the first digits of their ids, by a part of a name, and operations by ids that were
//! derived.
//!
//! Ids are looked up in the unique index of each table. Names of wallets, API keys and people are scanned: there
//! are few of them compared with operations, whose texts are never read here. Not in here: jobs, whose list is
//! short.

use holdfast_domain::admin::ResourceId;
use holdfast_domain::admin::search::{IdPrefix, ResourceMatch};
use holdfast_domain::text::spellings;
use holdfast_domain::{
    AdminKeyId, ApiKeyId, OperationId, PersonId, PostingId, WalletId, WebhookId,
};
use sea_orm::sea_query::{Expr, ExprTrait, Func, LikeExpr};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    Select,
};

use super::{ReadError, ReadTransaction};
use crate::rows::entity::{admin_key, api_key, operation, person, posting, wallet, webhook};
use crate::rows::{BadRow, Cells, FromCells};

/// Ids of one statement.
const IDS_AT_ONCE: usize = 500;
/// Escapes wildcards of a pattern: unlike a backslash, it is an ordinary character of both databases' literals.
const ESCAPE: char = '!';

/// Id of a row, and the wallet that it belongs to.
struct OwnedRow([u8; 16], Option<[u8; 16]>);

impl FromCells for OwnedRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self(cells.bytes()?, cells.opt_bytes()?))
    }
}

/// Id of a row of the operator.
struct PlainRow([u8; 16]);

impl FromCells for PlainRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self(cells.bytes()?))
    }
}

/// Rows of a table that belong to wallets, newest first.
async fn owned<E: EntityTrait>(
    db: &ReadTransaction,
    [seq, id, wallet]: [E::Column; 3],
    (condition, of): (Condition, Option<WalletId>),
    limit: u64,
    thing: fn([u8; 16]) -> ResourceId,
) -> Result<Vec<ResourceMatch>, ReadError> {
    let own = of.map(|of| wallet.eq(of.to_bytes().to_vec()));
    let found = newest::<E>([seq, id, wallet], condition.add_option(own), limit);
    let rows: Vec<OwnedRow> = db.select(found.as_query()).await?;
    let found = |OwnedRow(id, wallet): OwnedRow| ResourceMatch {
        thing: thing(id),
        wallet: wallet.map(WalletId::from_bytes),
    };
    Ok(rows.into_iter().map(found).collect())
}

fn newest<E: EntityTrait>(
    [seq, id, wallet]: [E::Column; 3],
    condition: Condition,
    limit: u64,
) -> Select<E> {
    let found = E::find().select_only().columns([id, wallet]).filter(condition);
    found.order_by(seq, Order::Desc).limit(limit)
}

/// Condition on the id of a row, and on its wallet if there is one.
fn within<C: ColumnTrait>(
    [id, wallet]: [C; 2],
    prefix: IdPrefix,
    of: Option<WalletId>,
) -> Condition {
    let (first, last) = (prefix.first().to_vec(), prefix.last().to_vec());
    // No index has the expression, so that of the id selects: by the one of the wallet, which has the order too, SQLite
    // would read all rows of a wallet to find a few.
    let own = |of: WalletId| {
        let column = || Expr::col(wallet.as_column_ref());
        Expr::expr(Func::coalesce([column(), column()])).eq(of.to_bytes().to_vec())
    };
    Condition::all().add(id.between(first, last)).add_option(of.map(own))
}

/// Rows of a table that are the operator's, newest first.
async fn plain<E: EntityTrait>(
    db: &ReadTransaction,
    [seq, id]: [E::Column; 2],
    condition: Condition,
    limit: u64,
    thing: fn([u8; 16]) -> ResourceId,
) -> Result<Vec<ResourceMatch>, ReadError> {
    let found = E::find().select_only().column(id).filter(condition);
    let found = found.order_by(seq, Order::Desc).limit(limit);
    let rows: Vec<PlainRow> = db.select(found.as_query()).await?;
    let found = |PlainRow(id): PlainRow| ResourceMatch { thing: thing(id), wallet: None };
    Ok(rows.into_iter().map(found).collect())
}

/// Calls [`owned`] or [`plain`] for the table of an entity and the kind of its rows.
macro_rules! rows_of {
    ($db:expr, $entity:ident, $wallet:ident, $condition:expr, $limit:expr, $id:ident, $kind:ident) => {
        owned::<$entity::Entity>(
            $db,
            [$entity::Column::Seq, $entity::Column::Id, $entity::Column::$wallet],
            $condition,
            $limit,
            |id| ResourceId::$kind($id::from_bytes(id)),
        )
        .await?
    };
    ($db:expr, $entity:ident, $condition:expr, $limit:expr, $id:ident, $kind:ident) => {
        plain::<$entity::Entity>(
            $db,
            [$entity::Column::Seq, $entity::Column::Id],
            $condition,
            $limit,
            |id| ResourceId::$kind($id::from_bytes(id)),
        )
        .await?
    };
}

pub(super) async fn by_id(
    db: &ReadTransaction,
    prefix: IdPrefix,
    of: Option<WalletId>,
    limit: u64,
) -> Result<Vec<ResourceMatch>, ReadError> {
    macro_rules! within {
        ($entity:ident, $wallet:ident) => {
            (within([$entity::Column::Id, $entity::Column::$wallet], prefix, of), None)
        };
        ($entity:ident) => {
            within([$entity::Column::Id, $entity::Column::Id], prefix, None)
        };
    }
    let of_operations = within!(operation, WalletId);
    let mut found = rows_of!(db, operation, WalletId, of_operations, limit, OperationId, Operation);
    found.extend(rows_of!(db, wallet, Id, within!(wallet, Id), limit, WalletId, Wallet));
    let of_keys = within!(api_key, WalletId);
    found.extend(rows_of!(db, api_key, WalletId, of_keys, limit, ApiKeyId, ApiKey));
    let of_postings = within!(posting, WalletId);
    found.extend(rows_of!(db, posting, WalletId, of_postings, limit, PostingId, Posting));
    let of_webhooks = within!(webhook, WalletId);
    found.extend(rows_of!(db, webhook, WalletId, of_webhooks, limit, WebhookId, Webhook));
    if of.is_none() {
        found.extend(rows_of!(db, person, within!(person), limit, PersonId, Person));
        found.extend(rows_of!(db, admin_key, within!(admin_key), limit, AdminKeyId, AdminKey));
    }
    Ok(found)
}

pub(super) async fn by_text(
    db: &ReadTransaction,
    text: &str,
    of: Option<WalletId>,
    limit: u64,
) -> Result<Vec<ResourceMatch>, ReadError> {
    let contains = |all: &[Expr]| {
        let mut any = Condition::any();
        for column in all {
            for spelling in spellings(text) {
                // Both: a database folds the case of only ASCII, or of all letters.
                let folded = Expr::expr(Func::lower(column.clone()));
                any = any.add(column.clone().like(pattern(&spelling)));
                any = any.add(folded.like(pattern(&spelling.to_lowercase())));
            }
        }
        any
    };
    macro_rules! columns {
        ($entity:ident, $($column:ident),+) => {
            contains(&[$(Expr::col(($entity::Entity, $entity::Column::$column))),+])
        };
    }
    let named = (columns!(wallet, Name, ExternalId), of);
    let mut found = rows_of!(db, wallet, Id, all(named), limit, WalletId, Wallet);
    let named = (columns!(api_key, Name, ExternalId), of);
    found.extend(rows_of!(db, api_key, WalletId, all(named), limit, ApiKeyId, ApiKey));
    if of.is_none() {
        found.extend(rows_of!(db, person, columns!(person, Email), limit, PersonId, Person));
    }
    Ok(found)
}

/// The same condition as one of several that all apply.
fn all((any, of): (Condition, Option<WalletId>)) -> (Condition, Option<WalletId>) {
    (Condition::all().add(any), of)
}

/// Pattern of texts that contain this one.
fn pattern(text: &str) -> LikeExpr {
    let mut pattern = String::from("%");
    for it in text.chars() {
        if matches!(it, '%' | '_' | ESCAPE) {
            pattern.push(ESCAPE);
        }
        pattern.push(it);
    }
    pattern.push('%');
    LikeExpr::new(pattern).escape(ESCAPE)
}

pub(super) async fn api_key_ids(
    db: &ReadTransaction,
    of: Option<WalletId>,
    limit: u64,
) -> Result<Vec<ApiKeyId>, ReadError> {
    let mut keys = api_key::Entity::find().select_only().column(api_key::Column::Id).limit(limit);
    if let Some(of) = of {
        keys = keys.filter(api_key::Column::WalletId.eq(of.to_bytes().to_vec()));
    }
    let rows: Vec<PlainRow> = db.select(keys.as_query()).await?;
    Ok(rows.into_iter().map(|PlainRow(id)| ApiKeyId::from_bytes(id)).collect())
}

pub(super) async fn existing_operations(
    db: &ReadTransaction,
    ids: Vec<OperationId>,
) -> Result<Vec<ResourceMatch>, ReadError> {
    let mut found = Vec::new();
    for ids in ids.chunks(IDS_AT_ONCE) {
        let ids = ids.iter().map(|id| id.to_bytes().to_vec());
        let any = (Condition::all().add(operation::Column::Id.is_in(ids)), None);
        let limit = u64::try_from(IDS_AT_ONCE).unwrap_or(u64::MAX);
        found.extend(rows_of!(db, operation, WalletId, any, limit, OperationId, Operation));
    }
    Ok(found)
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use sea_orm::DbBackend;

    use super::*;
    use crate::sqlite::plans::{ledger, plan};

    #[test]
    fn rows_of_a_wallet_are_found_by_their_ids() {
        let prefix = IdPrefix::parse("0192f0aa").unwrap();
        for of in [None, Some(WalletId::from_u128(1))] {
            let condition =
                within([operation::Column::Id, operation::Column::WalletId], prefix, of);
            let columns =
                [operation::Column::Seq, operation::Column::Id, operation::Column::WalletId];
            let found = newest::<operation::Entity>(columns, condition, 9);
            let plan = plan(&ledger(), &found.build(DbBackend::Sqlite).sql);
            let by_id = plan.iter().any(|line| line.contains("(id>? AND id<?)"));
            assert!(by_id, "{of:?} {plan:#?}");
        }
    }
}
