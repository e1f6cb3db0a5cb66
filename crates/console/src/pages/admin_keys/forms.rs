//! The forms that issue an admin key, rotate it and revoke it. A secret is told once, and kept by nobody here.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_accounts::{IssuedAdminKey, NewAdminKey};
use holdfast_domain::admin::{AdminKey, Reach, Role};

use super::opened;
use crate::failure::Failure;
use crate::kit::cell::{Cell, Tone};
use crate::kit::field::{Choice, FieldKind, FormField};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::isolation::isolated;
use crate::kit::moment;
use crate::kit::page::Page;
use crate::kit::section::{Facts, Notice, Snippet};
use crate::kit::visit::Visit;
use crate::pages::parts::reference::{self, WALLET};

const ROLE: &str = "role";
const GRACE: &str = "grace_seconds";
/// Spans for which an earlier secret stays, in seconds.
const GRACES: [(u64, &str); 3] =
    [(0, "at once"), (3_600, "after an hour"), (86_400, "after a day")];

/// The form that issues, with the roles that its visitor may give.
pub(crate) struct IssueAdminKey(Vec<Role>);

#[async_trait]
impl FormPage for IssueAdminKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let own = visit.principal().role;
        Ok(Self(Role::ALL.into_iter().filter(|role| own.may_grant(*role)).collect()))
    }

    fn frame(&self) -> FormFrame {
        let roles = self.0.iter().map(|role| Choice::new(role.label(), role.label()));
        let fields = vec![
            FormField::new("name", "Name", FieldKind::Text),
            FormField::new(ROLE, "Role", FieldKind::Select(roles.collect())).value("auditor"),
            FormField::optional(WALLET, "Wallet", FieldKind::Text)
                .hint("Its name or id: for a holder's role, and for no other."),
            FormField::optional("ends_at", "Ends (UTC)", FieldKind::Moment).hint(
                "From then on it is not accepted. Without an end it lasts until it is revoked.",
            ),
        ];
        let page = Page::new("Issue an admin key").below("Admin keys", "/admin-keys");
        FormFrame::new(page, fields, "Issue the key")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let role: String = sent.fields.want(ROLE)?;
        let bad = || Failure::field(ROLE, "There is no such role.");
        let role = Role::from_label(&role).ok_or_else(bad)?;
        let wallet = reference::wallet(visit, &sent.fields).await?;
        let new = NewAdminKey {
            name: sent.fields.want("name")?,
            role,
            reach: wallet.map_or(Reach::All, Reach::Wallet),
            ends_at: moment::read(&sent.fields, "ends_at")?,
        };
        let issued = visit.accounts().issue_admin_key(visit.principal(), &sent.request, &new).await;
        // The use case names the field of the API, whose form here is called otherwise.
        let issued = issued.map_err(|error| match Failure::from(error) {
            failure if failure.field.as_deref() == Some("wallet_id") => {
                Failure { field: Some(WALLET.to_owned()), ..failure }
            }
            failure => failure,
        });
        Ok(told(issued?.thing))
    }
}

/// The form that rotates.
pub(crate) struct RotateAdminKey(AdminKey);

#[async_trait]
impl FormPage for RotateAdminKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let graces = GRACES.map(|(span, label)| Choice::new(span.to_string(), label)).to_vec();
        let grace = FormField::new(GRACE, "The old secret ends", FieldKind::Select(graces));
        let intro = "It gets a new secret, which is told once. What it may do and its id stay.";
        let fields = vec![grace.value("86400"), FormField::reason()];
        FormFrame::new(page(&self.0, "Rotate").intro(intro), fields, "Rotate the key")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let seconds: u64 = sent.fields.want(GRACE)?;
        if !GRACES.iter().any(|(span, _)| *span == seconds) {
            return Err(Failure::field(GRACE, "Choose one of these."));
        }
        let (accounts, grace) = (visit.accounts(), Duration::from_secs(seconds));
        let id = self.0.id;
        let rotated =
            accounts.rotate_admin_key(visit.principal(), &sent.request, id, grace).await?;
        Ok(told(rotated.thing))
    }
}

/// The form that revokes.
pub(crate) struct RevokeAdminKey(AdminKey);

#[async_trait]
impl FormPage for RevokeAdminKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let intro =
            "It is not accepted any more, and cannot be taken back. The audit log keeps its name.";
        let page = page(&self.0, "Revoke").intro(intro);
        FormFrame::new(page, vec![FormField::reason()], "Revoke the key").grave()
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = self.0.id;
        visit.accounts().revoke_admin_key(visit.principal(), &sent.request, id).await?;
        Ok(FormOutcome::done().next(format!("/admin-keys/{id}")))
    }
}

fn page(key: &AdminKey, what: &str) -> Page {
    Page::new(format!("{what} {}", isolated(&key.name)))
        .below("Admin keys", "/admin-keys")
        .below(&key.name, format!("/admin-keys/{}", key.id))
}

/// The page that tells a secret, or the key's own where it was told before.
fn told(issued: IssuedAdminKey) -> FormOutcome {
    let href = format!("/admin-keys/{}", issued.id);
    let Some(bearer) = issued.bearer else { return FormOutcome::done() };
    let text = "This is told once. Keep it where your secrets are: nobody can show it again.";
    let rows = vec![("Admin key", Cell::link(issued.id.to_string(), href))];
    FormOutcome::done()
        .section(Notice::new(Tone::Warning, text))
        .section(Snippet::new("Secret", bearer.expose()))
        .section(Facts::new("", rows))
        .telling_once()
}
