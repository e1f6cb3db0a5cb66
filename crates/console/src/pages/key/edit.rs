//! The form that edits an API key. It carries the number of edits that it was opened at: a change of another person
//! since is not overwritten.

use holdfast_accounts::fields::members;
use holdfast_accounts::{Edit, ExternalId, Name, Reference};
use holdfast_domain::admin::ApiKeyPatch;
use holdfast_domain::credential::ApiKey;

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{FormField, Visit};
use crate::pages::key::{grant, wallet_of};
use crate::pages::parts::api_key::{framed, opened};

/// The form of one API key.
pub(crate) struct EditKey {
    key: ApiKey,
    offered: Vec<String>,
    bound: Option<String>,
}

impl FormPage for EditKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let key = opened(visit).await?;
        let bound = grant::bound(visit.principal(), &wallet_of(visit, &key).await?);
        Ok(Self { key, offered: grant::offered(visit), bound })
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let key = &self.key;
        let external_id = key.external_id.clone().unwrap_or_default();
        framed(form, key)
            .fields([
                FormField::text(&members::KEY_NEW_NAME).value(&key.name),
                FormField::text(&members::KEY_EXTERNAL_ID).value(external_id),
            ])
            .fields(grant::fields(&key.grant, &self.offered, self.bound.clone()))
            .fields([FormField::hidden_value("edited", &key.edited.to_string())])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let name: Name = sent.fields.require("name")?;
        let external_id: Option<ExternalId> = sent.fields.read("external_id")?;
        let grant = grant::read(&sent.fields)?;
        let patch = ApiKeyPatch {
            name: Some(name.as_str().to_owned()),
            external_id: Some(external_id.map(|id| id.as_str().to_owned())),
            counts: grant.limits.counts(),
            spend: Some(grant.limits.spend),
            models: grant::edited_models(grant.models, &self.key.grant),
            balance: Some(grant.balance),
            usage: Some(grant.usage),
            // The field has no seconds: an end that was not edited keeps its own.
            ends_at: grant::moves_end(&sent.fields, &self.key.grant).then_some(grant.ends_at),
        };
        let edit = Edit { patch, expected: Some(sent.fields.require("edited")?) };
        let id = Reference::Id(visit.id()?);
        visit.accounts().edit_api_key(visit.principal(), &sent.request, &id, edit).await?;
        Ok(FormOutcome::done().next(format!("/keys/{}", self.key.id)))
    }
}
