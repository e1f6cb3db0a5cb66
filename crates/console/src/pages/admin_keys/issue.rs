//! The form that issues an admin key. Its secret is told once, and kept by nobody here.

use async_trait::async_trait;
use holdfast_accounts::{IssuedAdminKey, NewAdminKey, Request};
use holdfast_domain::admin::{Reach, Role, UseCase};

use crate::ask::SentFields;
use crate::cell::{Cell, Tone};
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::moment;
use crate::page::Page;
use crate::pages::reference::{self, WALLET};
use crate::section::{Facts, Notice, Snippet};

const ROLE: &str = "role";

/// The form, with the roles that its visitor may give.
#[derive(Debug)]
pub(crate) struct IssueAdminKey {
    roles: Vec<Role>,
}

#[async_trait]
impl FormPage for IssueAdminKey {
    const USE_CASE: UseCase = UseCase::AdminKeyIssue;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let own = sheet.visitor.principal.role;
        let roles = Role::ALL.into_iter().filter(|role| own.may_grant(*role)).collect();
        Ok(Self { roles })
    }

    fn frame(&self) -> FormFrame {
        let roles = self.roles.iter().map(|role| Choice::new(role.label(), role.label()));
        FormFrame {
            page: Page::new("Issue an admin key").below("Admin keys", "/admin-keys"),
            fields: vec![
                FormField::new("name", "Name", FieldKind::Text),
                FormField::new(ROLE, "Role", FieldKind::Select(roles.collect())).value("auditor"),
                FormField::optional(WALLET, "Wallet", FieldKind::Text)
                    .hint("Its name or id: for a holder's role, and for no other."),
                FormField::optional("ends_at", "Ends (UTC)", FieldKind::Moment).hint(
                    "From then on it is not accepted. Without an end it lasts until it is revoked.",
                ),
            ],
            submit: "Issue the key".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let role: String = fields.want(ROLE)?;
        let bad = || Failure::field(ROLE, "There is no such role.");
        let role = Role::from_label(&role).ok_or_else(bad)?;
        let wallet = reference::wallet(&sheet.desk, &sheet.visitor, fields).await?;
        let new = NewAdminKey {
            name: fields.want("name")?,
            role,
            reach: wallet.map_or(Reach::All, Reach::Wallet),
            ends_at: moment::read(fields, "ends_at")?,
        };
        let accounts = &sheet.desk.accounts;
        let issued = accounts.issue_admin_key(&sheet.visitor.principal, request, &new).await;
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

/// The page that tells a secret, or the key's own where it was told before.
pub(super) fn told(issued: IssuedAdminKey) -> FormOutcome {
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
