//! Admin keys: who may administer by a key. A key that has ended stays listed, since the trail names it.

pub(crate) mod forms;

use holdfast_domain::admin::listing::AdminKeyState;
use holdfast_domain::admin::{AdminKey, Reach, ResourceId, UseCase};
use holdfast_domain::{AdminKeyId, Timestamp};

use crate::failure::Failure;
use crate::kit::{
    Cell, Facts, FieldKind, Filter, FormField, Page, Pages, Table, Tone, Visit, isolated,
    with_query,
};
use crate::pages::parts::reference::Names;

texts! { #[template(path = "pages/admin_keys.txt")] AdminKeysText { Empty = "empty" } }

const STATE: &str = "state";

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let state = match visit.query.get(STATE) {
        Some("in_force") => Some(AdminKeyState::InForce),
        Some("ended") => Some(AdminKeyState::Ended),
        Some(_) | None => None,
    };
    let pages = Pages::new(&visit, "/admin-keys", &visit.query);
    let listed = visit.accounts().admin_keys(visit.principal(), state, pages.request()?).await?;
    let now = visit.accounts().clock().await?;
    let next = pages.next(listed.next)?;
    let names = Names::read(&visit, listed.rows.iter().filter_map(wallet)).await?;
    let rows = listed.rows.iter().map(|key| row(key, &names, now));
    let states = FieldKind::none_or("All", [("in_force", "In force"), ("ended", "Ended")]);
    let field = FormField::sought(STATE, "State", states, &visit.query);
    Ok(Page::new("Admin keys")
        .form(&visit, UseCase::AdminKeyIssue, "/admin-keys/new")
        .section(Filter::new("/admin-keys", vec![field]))
        .section(Table::of("Newest first", rows, AdminKeysText::Empty).next(next)))
}

fn row(key: &AdminKey, names: &Names<'_>, now: Timestamp) -> [(&'static str, Cell); 6] {
    [
        ("Name", Cell::link(&key.name, format!("/admin-keys/{}", key.id))),
        ("Role", Cell::text(key.role.label())),
        ("Wallet", reach(key, names)),
        ("State", state(key, now)),
        ("Ends", Cell::some_moment(key.ends_at)),
        ("Created", Cell::moment(key.created_at)),
    ]
}

fn wallet(key: &AdminKey) -> Option<ResourceId> {
    match key.reach {
        Reach::All => None,
        Reach::Wallet(id) => Some(ResourceId::Wallet(id)),
    }
}

fn reach(key: &AdminKey, names: &Names<'_>) -> Cell {
    wallet(key).map_or_else(|| Cell::text("all"), |wallet| names.link(wallet))
}

fn state(key: &AdminKey, now: Timestamp) -> Cell {
    match (key.revoked_at, key.has_ended(now)) {
        (Some(_), _) => Cell::badge("revoked", Tone::Plain),
        (None, true) => Cell::badge("ended", Tone::Plain),
        (None, false) => Cell::badge("in force", Tone::Good),
    }
}

/// The key whose page or form it is.
async fn opened(visit: &Visit) -> Result<AdminKey, Failure> {
    let id = AdminKeyId::from(visit.id()?);
    Ok(visit.accounts().admin_key(visit.principal(), id).await?)
}

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let key = opened(&visit).await?;
    let id = key.id;
    let now = visit.accounts().clock().await?;
    let names = Names::read(&visit, wallet(&key)).await?;
    let is_in_force = !key.has_ended(now);
    let base = format!("/admin-keys/{id}");
    let may_rotate = visit.may(UseCase::AdminKeyRotate) && is_in_force;
    let may_revoke = visit.may(UseCase::AdminKeyRevoke) && is_in_force;
    let actor = format!("admin_key:{id}");
    let did = with_query("/trail", &[("actor", Some(&actor))]);
    let rows = vec![
        ("State", state(&key, now)),
        ("Role", Cell::text(key.role.label())),
        ("Wallet", reach(&key, &names)),
        ("Ends", Cell::some_moment(key.ends_at)),
        ("Created", Cell::moment(key.created_at)),
        ("Created by", Cell::code(key.created_by)),
        ("Revoked", Cell::some_moment(key.revoked_at)),
        ("Id", Cell::code(key.id)),
    ];
    Ok(Page::new(isolated(&key.name))
        .below("Admin keys", "/admin-keys")
        .action(may_rotate, "Rotate", format!("{base}/rotate"))
        .danger(may_revoke, "Revoke", format!("{base}/revoke"))
        .action(visit.may(UseCase::AuditRead), "Audit log entries", did)
        .section(Facts::new("", rows)))
}
