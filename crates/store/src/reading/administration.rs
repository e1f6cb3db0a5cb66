//! Lists of administration: postings with their details, admin keys without their verifiers, and the audit log with
//! the addresses that are still kept outside it.

use std::collections::BTreeMap;

use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::listing::{
    AdminKeyState, NodeListing, Page, PageRequest, PostingFilter, PostingListing, TrailFilter,
    TrailListing,
};
use holdfast_domain::admin::{ActorId, AdminKey, WebhookRecord};
use holdfast_domain::ledger::Posting;
use holdfast_domain::operation::Lease;
use holdfast_domain::ports::{Durability, Unavailable};
use holdfast_domain::secret::SettingsDigest;
use holdfast_domain::{PostingId, Timestamp, WalletId};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, Iterable, QueryFilter, QuerySelect, QueryTrait,
};

use super::page::{PageWindow, page, sparse_page};
use super::{ReadError, ReadTransaction};
use crate::rows::entity::posting_details::DetailsRow;
use crate::rows::entity::{admin_key, audit, audit_address, posting, posting_details, webhook};
use crate::rows::{self, BadRow, Cells, FromCells};
use crate::store::Store;

/// A posting and the moment at which it was made.
struct PostingRow {
    created_at: Timestamp,
    posting: Posting,
}

impl FromCells for PostingRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok(Self { created_at: cells.timestamp()?, posting: rows::posting(cells)? })
    }
}

impl FromCells for NodeListing {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        let node = rows::node(cells)?;
        let lease = Lease { node, ends_at: cells.timestamp()? };
        let address = cells.opt_text()?;
        let settings = cells.opt_bytes()?.map(SettingsDigest::from_bytes);
        let now = cells.timestamp()?;
        let is_replicated = cells.int()? != 0;
        let durability = if is_replicated { Durability::Replicated } else { Durability::Local };
        Ok(Self { lease, address, settings, now, durability })
    }
}

/// Actor of the posting of this id.
struct ActorRow(PostingId, ActorId);

impl FromCells for ActorRow {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        let id = PostingId::from_bytes(cells.bytes()?);
        Ok(Self(id, cells.parse(|text: String| text.parse().ok())?))
    }
}

impl FromCells for (i64, String) {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        Ok((cells.int()?, cells.text()?))
    }
}

pub(super) async fn postings(
    db: &ReadTransaction,
    PostingFilter { list, wallet, operation }: PostingFilter,
    request: PageRequest,
) -> Result<Page<PostingListing>, ReadError> {
    use posting::Column;
    let rows = posting::Entity::find()
        .apply_if(list.kind(), |rows, kind| rows.filter(Column::Kind.eq(kind)))
        .apply_if(wallet, |rows, id| rows.filter(Column::WalletId.eq(id.to_bytes().to_vec())))
        .apply_if(operation, |rows, id| {
            rows.filter(Column::OperationId.eq(id.to_bytes().to_vec()))
        });
    // An index leads to the postings of a wallet, and another one to those of an operation.
    let found: Page<PostingRow> = if wallet.is_some() || operation.is_some() {
        page(db, rows, Column::Seq, request).await?
    } else {
        let all = PageWindow::of_all(db, posting::Entity::find(), Column::Seq).await?;
        sparse_page(db, rows, all, Column::Seq, request).await?
    };
    let Page { rows, next, places } = found;
    Ok(Page { rows: with_details(db, rows).await?, next, places })
}

pub(super) async fn posting_listing(
    db: &ReadTransaction,
    id: PostingId,
) -> Result<Option<PostingListing>, ReadError> {
    let of_id = posting::Entity::find().filter(posting::Column::Id.eq(id.to_bytes().to_vec()));
    let found: Vec<(i64, PostingRow)> = db.select(of_id.as_query()).await?;
    let found = found.into_iter().map(|(_, row)| row).collect();
    Ok(with_details(db, found).await?.pop())
}

/// Postings with the details of each, and its actor.
async fn with_details(
    db: &ReadTransaction,
    found: Vec<PostingRow>,
) -> Result<Vec<PostingListing>, ReadError> {
    let ids = found.iter().map(|row| row.posting.id.to_bytes().to_vec());
    let theirs =
        posting_details::Entity::find().filter(posting_details::Column::PostingId.is_in(ids));
    let details: Vec<DetailsRow> = db.select(theirs.as_query()).await?;
    let mut details: BTreeMap<_, _> = details.into_iter().collect();
    let ids = found.iter().map(|row| row.posting.id.to_bytes().to_vec());
    let rows_of_trail = audit::Entity::find()
        .select_only()
        .columns([audit::Column::ThingId, audit::Column::Actor])
        .filter(audit::Column::ThingKind.eq("posting"))
        .filter(audit::Column::ThingId.is_in(ids));
    let actors: Vec<ActorRow> = db.select(rows_of_trail.as_query()).await?;
    // The first row of the audit log has the actor of a posting.
    let actors = actors.into_iter().rev().map(|ActorRow(id, actor)| (id, actor));
    let actors: BTreeMap<_, _> = actors.collect();
    let listing = |PostingRow { created_at, posting }| {
        let details = details.remove(&posting.id).unwrap_or_default();
        let actor = actors.get(&posting.id).copied();
        PostingListing { posting, details, actor, created_at }
    };
    Ok(found.into_iter().map(listing).collect())
}

impl Store {
    pub(crate) async fn webhook_page(
        &self,
        wallet: Option<WalletId>,
        request: PageRequest,
    ) -> Result<Page<WebhookRecord>, Unavailable> {
        use webhook::Column;
        let webhooks = webhook::Entity::find()
            .apply_if(wallet, |all, id| all.filter(Column::WalletId.eq(id.to_bytes().to_vec())));
        self.read_transaction(move |db| {
            Box::pin(async move { page(&*db, webhooks, Column::Seq, request).await })
        })
        .await
    }
}

pub(super) async fn admin_keys(
    db: &ReadTransaction,
    state: Option<AdminKeyState>,
    request: PageRequest,
) -> Result<Page<AdminKey>, ReadError> {
    use admin_key::Column;
    let now = db.now().await?.as_micros();
    let keys = admin_key::Entity::find().apply_if(state, |keys, state| {
        keys.filter(match state {
            AdminKeyState::InForce => Condition::all()
                .add(Column::RevokedAt.is_null())
                .add(Condition::any().add(Column::EndsAt.is_null()).add(Column::EndsAt.gt(now))),
            AdminKeyState::Ended => {
                Condition::any().add(Column::RevokedAt.is_not_null()).add(Column::EndsAt.lte(now))
            }
        })
    });
    // Those who administer are few: all of them are fewer than a page may read.
    page(db, keys, Column::Seq, request).await
}

pub(super) async fn trail(
    db: &ReadTransaction,
    TrailFilter { thing, actor, use_case }: TrailFilter,
    request: PageRequest,
) -> Result<Page<TrailListing>, ReadError> {
    use audit::Column;
    let rows = audit::Entity::find()
        .select_only()
        // The number of the page, and then the row, whose first column it is as well.
        .column_as(Column::Seq, "number")
        .columns(Column::iter())
        .apply_if(thing, |rows, thing| {
            let of_kind = rows.filter(Column::ThingKind.eq(thing.kind()));
            of_kind.filter(Column::ThingId.eq(thing.id().to_vec()))
        })
        .apply_if(actor, |rows, actor| rows.filter(Column::Actor.eq(actor.to_string())))
        .apply_if(use_case, |rows, use_case| rows.filter(Column::UseCase.eq(use_case.label())));
    let is_sparse = thing.is_none() && (actor.is_some() || use_case.is_some());
    let found: Page<TrailRow> = if is_sparse {
        let all = PageWindow::of_all(db, audit::Entity::find(), Column::Seq).await?;
        sparse_page(db, rows, all, Column::Seq, request).await?
    } else {
        page(db, rows, Column::Seq, request).await?
    };
    let numbers = found.rows.iter().map(|row| i64::try_from(row.seq).unwrap_or(i64::MAX));
    let kept = audit_address::Entity::find().filter(audit_address::Column::AuditSeq.is_in(numbers));
    let addresses: Vec<(i64, String)> = db.select(kept.as_query()).await?;
    let mut addresses: BTreeMap<_, _> = addresses
        .into_iter()
        .filter_map(|(seq, address)| Some((u64::try_from(seq).ok()?, address)))
        .collect();
    let listing = |row: TrailRow| TrailListing { address: addresses.remove(&row.seq), row };
    Ok(found.map(listing))
}
