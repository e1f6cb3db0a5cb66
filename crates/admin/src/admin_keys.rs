//! `/admin_keys`: issue, list, show, rotate and revoke. Only for owners; no key gets a role that its issuer lacks.
//!
//! The secret is shown once, in the answer of the request that created the key. A repetition of that request has
//! `"key": null` and a `notice` with the way to get another secret.
//!
//! Lists and answers never contain a verifier. An ended key stays listed, because the audit log names it.

use holdfast_accounts::{IssuedAdminKey, NewAdminKey};
use holdfast_domain::WalletId;
use holdfast_domain::admin::{AdminKey, Reach};
use holdfast_domain::debug_as;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Reply};
use crate::description::{AdminKeyPath, ChangeHeader, Errors};
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::{Caller, Change, ChangeBody, ReasonBody};
use crate::rotation_body::RotationBody;
use crate::value::schema::{NameText, ReasonText};
use crate::value::{AdminKeyStateLabel, Moment, RoleLabel, parse, parse_some};

/// An admin key that was issued or rotated.
#[derive(Serialize, ToSchema)]
#[schema(as = IssuedAdminKey)]
pub(crate) struct AdminKeyView {
    #[schema(format = "uuid")]
    id: String,
    /// Text that its holder sends, shown only in this answer; null if an earlier request created the key.
    key: Option<String>,
    /// Remedy if `key` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    notice: Option<&'static str>,
    /// The key as it was issued, if this request issued it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    issued: Option<AdminKeyTerms>,
}

/// Terms of an admin key.
#[derive(Debug, Serialize, ToSchema)]
struct AdminKeyTerms {
    name: String,
    role: RoleLabel,
    /// The one wallet of a holder's role.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    ends_at: Option<Moment>,
}

/// An admin key that was revoked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedAdminKey {
    #[schema(format = "uuid")]
    id: String,
}

const SHOWN_BEFORE: &str = "An earlier request with this Idempotency-Key made the key, and its secret was told \
    then. If that answer was lost, POST /admin/v1/admin_keys/{id}/rotate with a new Idempotency-Key \
    and `grace_seconds` 0 for another one.";

impl AdminKeyView {
    fn new(issued: IssuedAdminKey, replayed: bool) -> Self {
        let terms = issued.admin_key.map(|key| AdminKeyTerms {
            name: key.name,
            role: key.role.into(),
            wallet_id: match key.reach {
                Reach::All => None,
                Reach::Wallet(wallet) => Some(wallet.to_string()),
            },
            ends_at: key.ends_at.map(Moment),
        });
        Self {
            id: issued.id.to_string(),
            key: issued.bearer.map(|bearer| bearer.expose()),
            notice: replayed.then_some(SHOWN_BEFORE),
            issued: terms,
        }
    }
}

debug_as!(AdminKeyView as it: "AdminKeyView({})", it.id);

/// An admin key as it is kept: never with a secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdminKey)]
pub(crate) struct AdminKeyRecordView {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    role: RoleLabel,
    /// The one wallet of a holder's role.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    ends_at: Option<Moment>,
    created_at: Moment,
    /// Actor that issued it: `local`, `admin_key:<id>` or `person:<id>`.
    created_by: String,
    revoked_at: Option<Moment>,
}

impl From<AdminKey> for AdminKeyRecordView {
    fn from(key: AdminKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            role: key.role.into(),
            wallet_id: match key.reach {
                Reach::All => None,
                Reach::Wallet(wallet) => Some(wallet.to_string()),
            },
            ends_at: key.ends_at.map(Moment),
            created_at: Moment(key.created_at),
            created_by: key.created_by.to_string(),
            revoked_at: key.revoked_at.map(Moment),
        }
    }
}

/// Filter of a list of admin keys, and its page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AdminKeyQuery {
    /// Filter by state.
    #[param(inline)]
    state: Option<AdminKeyStateLabel>,
}

/// An admin key to be issued.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdminKeyDraft {
    /// 1 to 64 printable characters, not like an id; unique among the keys in force.
    #[schema(value_type = NameText)]
    name: String,
    role: RoleLabel,
    /// The one wallet of a holder's role; none for any other.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    ends_at: Option<Moment>,
    /// The end in seconds from now; not both.
    #[schema(minimum = 1, maximum = 3_155_760_000_u64)]
    ends_in_seconds: Option<u64>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for AdminKeyDraft {}

#[utoipa::path(
    post, path = "/admin_keys", operation_id = "issue_admin_key", tag = "admin_keys",
    params(ChangeHeader), request_body = AdminKeyDraft,
    responses((status = 201, description = "The admin key.", body = AdminKeyView), Errors)
)]
/// Issues an admin key; its secret is shown only in this answer.
pub(crate) async fn issue(
    caller: Caller,
    Change { request, body }: Change<AdminKeyDraft>,
) -> Reply<AdminKeyView> {
    let wallet: Option<WalletId> = parse_some("wallet_id", body.wallet_id.as_deref())?;
    let new = NewAdminKey {
        name: parse("name", &body.name)?,
        role: body.role.into(),
        reach: wallet.map_or(Reach::All, Reach::Wallet),
        ends_at: caller.gate.end(body.ends_at, body.ends_in_seconds).await?,
    };
    let issued = caller.accounts().issue_admin_key(&caller.principal, &request, &new).await?;
    // Before the answer: its reader may send the key at once, from an address that forged keys come
    // from.
    caller.gate.note_issued(&issued.thing);
    Ok(Answer::made(AdminKeyView::new(issued.thing, issued.replayed), issued.replayed))
}

#[utoipa::path(
    get, path = "/admin_keys", operation_id = "list_admin_keys", tag = "admin_keys",
    params(AdminKeyQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<AdminKeyRecordView>), Errors)
)]
/// Lists admin keys, those that have ended among them.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<AdminKeyQuery>,
) -> Reply<List<AdminKeyRecordView>> {
    let list = ListPages::new(&caller, "admin_keys", &query.state)?;
    let page = list.request(&page)?;
    let state = query.state.map(Into::into);
    list.list(caller.accounts().admin_keys(&caller.principal, state, page).await?).await
}

#[utoipa::path(
    get, path = "/admin_keys/{id}", operation_id = "show_admin_key", tag = "admin_keys", params(AdminKeyPath),
    responses((status = 200, description = "The admin key.", body = AdminKeyRecordView), Errors)
)]
/// Shows an admin key.
pub(crate) async fn show(caller: Caller) -> Reply<AdminKeyRecordView> {
    let found = caller.accounts().admin_key(&caller.principal, caller.id()?).await?;
    Ok(Answer::of(found.into()))
}

#[utoipa::path(
    post, path = "/admin_keys/{id}/rotate", operation_id = "rotate_admin_key", tag = "admin_keys",
    params(AdminKeyPath, ChangeHeader), request_body = Option<RotationBody>,
    responses((status = 200, description = "The admin key.", body = AdminKeyView), Errors)
)]
/// Adds a credential to an admin key, and ends its other ones after a grace.
pub(crate) async fn rotate(
    caller: Caller,
    Change { request, body }: Change<RotationBody>,
) -> Reply<AdminKeyView> {
    let (id, grace) = (caller.id()?, body.grace()?);
    let rotated =
        caller.accounts().rotate_admin_key(&caller.principal, &request, id, grace).await?;
    caller.gate.note_issued(&rotated.thing);
    Ok(Answer::changed(AdminKeyView::new(rotated.thing, rotated.replayed), rotated.replayed))
}

#[utoipa::path(
    post, path = "/admin_keys/{id}/revoke", operation_id = "revoke_admin_key", tag = "admin_keys",
    params(AdminKeyPath, ChangeHeader), request_body = Option<ReasonBody>,
    responses((status = 200, description = "The id.", body = RevokedAdminKey), Errors)
)]
/// Ends an admin key for good. The last owner's stays.
pub(crate) async fn revoke(caller: Caller, change: Change<ReasonBody>) -> Reply<RevokedAdminKey> {
    let id = caller.id()?;
    let revoked =
        caller.accounts().revoke_admin_key(&caller.principal, &change.request, id).await?;
    let view = RevokedAdminKey { id: revoked.thing.to_string() };
    Ok(Answer::changed(view, revoked.replayed))
}
