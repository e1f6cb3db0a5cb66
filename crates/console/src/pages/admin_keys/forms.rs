//! The forms that issue an admin key, rotate it and revoke it. A secret is shown once, and not stored.

use holdfast_accounts::fields::members;
use holdfast_accounts::{IssuedAdminKey, NewAdminKey};
use holdfast_domain::admin::{AdminKey, Reach, Role};

use super::opened;
use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission, reason_forms};
use crate::kit::moment;
use crate::kit::value::{grace, graces};
use crate::kit::{Cell, Choice, Facts, FieldKind, FormField, Visit};
use crate::pages::parts::reference::{self, WALLET};

texts! { #[template(path = "pages/admin_keys.txt")] AdminKeysFormsText { Secret = "secret" } }

const ROLE: &str = "role";
/// Spans for which an earlier secret stays, in seconds.
const GRACES: [(u64, &str); 3] =
    [(0, "at once"), (3_600, "after an hour"), (86_400, "after a day")];

/// The form that issues, with the roles that its visitor may give.
pub(crate) struct IssueAdminKey(Vec<Role>);

impl FormPage for IssueAdminKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let own = visit.principal().role;
        Ok(Self(Role::ALL.into_iter().filter(|role| own.may_grant(*role)).collect()))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let roles = self.0.iter().map(|role| Choice::new(role.label(), role.label()));
        let role = FormField::of(&members::ADMIN_KEY_ROLE, FieldKind::Select(roles.collect()));
        form.below("Admin keys", "/admin-keys").fields([
            FormField::text(&members::ADMIN_KEY_NAME),
            role.value("auditor"),
            FormField::text(&members::ADMIN_KEY_WALLET),
            FormField::of(&members::ADMIN_KEY_ENDS_AT, FieldKind::Moment),
        ])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let role = sent.fields.require_choice(ROLE, Role::from_label)?;
        let wallet = reference::wallet(visit, &sent.fields).await?;
        let new = NewAdminKey {
            name: sent.fields.require("name")?,
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
        Ok(shown_once(issued?.thing))
    }
}

/// The form that rotates.
pub(crate) struct RotateAdminKey(AdminKey);

impl FormPage for RotateAdminKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let grace = FormField::of(&members::ADMIN_KEY_GRACE, graces(&GRACES)).value("86400");
        framed(form, &self.0).fields([grace, FormField::reason()])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (visit.accounts(), self.0.id);
        let grace = grace(&sent.fields, &GRACES)?;
        let rotated =
            accounts.rotate_admin_key(visit.principal(), &sent.request, id, grace).await?;
        Ok(shown_once(rotated.thing))
    }
}

reason_forms! {
    /// The form that revokes.
    RevokeAdminKey(it: AdminKey) { revoke_admin_key(it.id), "admin-keys", FormField::reason() }
}

fn framed(form: FormFrame, key: &AdminKey) -> FormFrame {
    let form = form.about(&key.name).below("Admin keys", "/admin-keys");
    form.below(&key.name, format!("/admin-keys/{}", key.id))
}

/// The page with the secret, or the key's own if it was shown before.
fn shown_once(issued: IssuedAdminKey) -> FormOutcome {
    let href = format!("/admin-keys/{}", issued.id);
    let Some(bearer) = issued.bearer else { return FormOutcome::done() };
    let rows = vec![("Admin key", Cell::link(issued.id.to_string(), href))];
    let text = AdminKeysFormsText::Secret.to_string();
    FormOutcome::secret(text, "Secret", bearer.expose()).section(Facts::new("", rows))
}
