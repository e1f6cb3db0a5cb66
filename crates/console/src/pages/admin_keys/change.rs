//! The forms that rotate an admin key and revoke it.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::AdminKeyId;
use holdfast_domain::admin::{AdminKey, UseCase};

use super::issue::told;
use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::isolation::isolated;
use crate::page::Page;

const GRACE: &str = "grace_seconds";

/// The form that rotates.
#[derive(Debug)]
pub(crate) struct AdminKeyRotation {
    key: AdminKey,
}

/// The form that revokes.
#[derive(Debug)]
pub(crate) struct Revocation {
    key: AdminKey,
}

async fn key(sheet: &Sheet) -> Result<AdminKey, Failure> {
    let id = AdminKeyId::from(sheet.id()?);
    Ok(sheet.desk.accounts.admin_key(&sheet.visitor.principal, id).await?)
}

fn page(key: &AdminKey, what: &str) -> Page {
    Page::new(format!("{what} {}", isolated(&key.name)))
        .below("Admin keys", "/admin-keys")
        .below(&key.name, format!("/admin-keys/{}", key.id))
}

#[async_trait]
impl FormPage for AdminKeyRotation {
    const USE_CASE: UseCase = UseCase::AdminKeyRotate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { key: key(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let graces = [("0", "at once"), ("3600", "after an hour"), ("86400", "after a day")];
        let graces = graces.map(|(value, label)| Choice::new(value, label)).to_vec();
        let intro = "It gets a new secret, which is told once. What it may do and its id stay.";
        FormFrame {
            page: page(&self.key, "Rotate").intro(intro),
            fields: vec![
                FormField::new(GRACE, "The old secret ends", FieldKind::Select(graces))
                    .value("86400"),
                FormField::optional("reason", "Reason", FieldKind::Text),
            ],
            submit: "Rotate the key".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        // A choice of the form, and not any number.
        let seconds: u32 = fields.want(GRACE)?;
        let grace = Duration::from_secs(u64::from(seconds));
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        let rotated = accounts.rotate_admin_key(principal, request, self.key.id, grace).await?;
        Ok(told(rotated.thing))
    }
}

#[async_trait]
impl FormPage for Revocation {
    const USE_CASE: UseCase = UseCase::AdminKeyRevoke;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { key: key(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let intro =
            "It is not accepted any more, and cannot be taken back. The trail keeps its name.";
        FormFrame {
            page: page(&self.key, "Revoke").intro(intro),
            fields: vec![FormField::optional("reason", "Reason", FieldKind::Text)],
            submit: "Revoke the key".to_owned(),
            is_grave: true,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (&sheet.desk.accounts, self.key.id);
        accounts.revoke_admin_key(&sheet.visitor.principal, request, id).await?;
        Ok(FormOutcome::done().next(format!("/admin-keys/{id}")))
    }
}
