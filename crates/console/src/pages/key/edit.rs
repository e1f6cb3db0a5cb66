//! The form that edits an API key. It carries the number of edits that it was opened at: what somebody else changed
//! since is not overwritten.

use async_trait::async_trait;
use holdfast_accounts::{Edit, ExternalId, Name, Reference, Request};
use holdfast_domain::admin::{ApiKeyPatch, UseCase};
use holdfast_domain::credential::ApiKey;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::key::{form_page, grant, wallet_of};

/// The form of one API key.
#[derive(Debug)]
pub(crate) struct EditKey {
    key: ApiKey,
    offered: Vec<String>,
    bound: Option<String>,
}

#[async_trait]
impl FormPage for EditKey {
    const USE_CASE: UseCase = UseCase::ApiKeyUpdate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let (desk, principal) = (&sheet.desk, &sheet.visitor.principal);
        let key =
            desk.accounts.api_key(principal, &Reference::Id(sheet.id()?), None).await?.api_key;
        let wallet = wallet_of(desk, &sheet.visitor, &key).await?;
        let offered = grant::offered(desk, principal);
        Ok(Self { key, offered, bound: grant::bound(principal, &wallet) })
    }

    fn frame(&self) -> FormFrame {
        let key = &self.key;
        let mut fields = vec![
            FormField::new("name", "Name", FieldKind::Text).value(&key.name),
            FormField::optional("external_id", "External id", FieldKind::Text)
                .value(key.external_id.clone().unwrap_or_default()),
        ];
        fields.extend(grant::fields(&key.grant, &self.offered, self.bound.clone()));
        fields.push(FormField::hidden_value("edited", &key.edited.to_string()));
        let page = form_page("Edit", key);
        FormFrame { page, fields, submit: "Save".to_owned(), is_grave: false }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let name: Name = fields.want("name")?;
        let external_id: Option<ExternalId> = fields.read("external_id")?;
        let grant = grant::read(fields)?;
        let patch = ApiKeyPatch {
            name: Some(name.as_str().to_owned()),
            external_id: Some(external_id.map(|id| id.as_str().to_owned())),
            requests_per_minute: Some(grant.limits.requests_per_minute),
            tokens_per_minute: Some(grant.limits.tokens_per_minute),
            concurrency: Some(grant.limits.concurrency),
            spend: Some(grant.limits.spend),
            models: grant::edited_models(grant.models, &self.key.grant),
            balance: Some(grant.balance),
            usage: Some(grant.usage),
            // The field has no seconds: an end that nobody touched stays the moment that it is.
            ends_at: grant::moves_end(fields, &self.key.grant).then_some(grant.ends_at),
        };
        let edit = Edit { patch, expected: Some(fields.want("edited")?) };
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        accounts.edit_api_key(&sheet.visitor.principal, request, &id, edit).await?;
        Ok(FormOutcome::done().next(format!("/keys/{}", self.key.id)))
    }
}
