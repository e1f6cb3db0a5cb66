//! The forms that make a wallet and edit it. The one that edits carries the number of edits that it was opened at: what
//! somebody else changed since is not overwritten.

use async_trait::async_trait;
use holdfast_accounts::{Edit, ExternalId, Name, NewWallet, Reference};
use holdfast_domain::admin::{WalletPatch, WalletRecord};

use crate::failure::Failure;
use crate::kit::ask::SentFields;
use crate::kit::field::{FieldKind, FormField};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::page::Page;
use crate::kit::value::{spend, threshold, windows};
use crate::kit::visit::Visit;
use crate::pages::parts::wallet::{form_page, opened};

/// Names of the two fields of a bound on what keys spend.
const KEY_SPEND: [&str; 2] = ["key_spend", "key_spend_window"];

/// The form that makes a wallet.
pub(crate) struct CreateWallet;

#[async_trait]
impl FormPage for CreateWallet {
    async fn open(_visit: &Visit) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn frame(&self) -> FormFrame {
        let currency = FormField::new("currency", "Currency", FieldKind::Text);
        let currency = currency.value("USD").hint("Three capital letters. It stays for ever.");
        let mut fields = fields().to_vec();
        fields.insert(1, currency);
        let page = Page::new("Make a wallet").below("Wallets", "/wallets");
        FormFrame::new(page, fields, "Make the wallet")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (name, currency) = (sent.fields.want("name")?, sent.fields.want("currency")?);
        let settings = WalletPatch { name: None, ..settings(&sent.fields)? };
        let new = NewWallet { name, currency, settings };
        let made = visit.accounts().create_wallet(visit.principal(), &sent.request, &new).await?;
        Ok(FormOutcome::done().next(format!("/wallets/{}", made.thing.wallet.id)))
    }
}

/// The form that edits a wallet.
pub(crate) struct EditWallet(WalletRecord);

#[async_trait]
impl FormPage for EditWallet {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self) -> FormFrame {
        let Self(record) = self;
        let [name, external_id, low_balance, key_spend, window] = fields();
        let amount = |amount: Option<_>| amount.map(|amount| format!("{amount}"));
        let spend = record.key_spend;
        let fields = vec![
            name.value(&record.wallet.name),
            external_id.value(record.external_id.clone().unwrap_or_default()),
            low_balance.value(amount(record.low_balance).unwrap_or_default()),
            key_spend.value(amount(spend.map(|spend| spend.micros)).unwrap_or_default()),
            window.value(spend.map_or("month", |spend| spend.window.label())),
            FormField::hidden_value("edited", &record.edited.to_string()),
        ];
        FormFrame::new(form_page("Edit", record), fields, "Save")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let patch = settings(&sent.fields)?;
        let edit = Edit { patch, expected: Some(sent.fields.want("edited")?) };
        let id = Reference::Id(visit.id()?);
        visit.accounts().edit_wallet(visit.principal(), &sent.request, &id, edit).await?;
        Ok(FormOutcome::done().next(format!("/wallets/{}", self.0.wallet.id)))
    }
}

/// The settings that the fields of [`fields`] have.
fn settings(fields: &SentFields) -> Result<WalletPatch, Failure> {
    let name: Name = fields.want("name")?;
    let external_id: Option<ExternalId> = fields.read("external_id")?;
    Ok(WalletPatch {
        name: Some(name.as_str().to_owned()),
        external_id: Some(external_id.map(|id| id.as_str().to_owned())),
        low_balance: Some(threshold(fields, "low_balance")?),
        key_spend: Some(spend(fields, KEY_SPEND)?),
    })
}

/// Name, external id, threshold, and bound on what keys spend.
fn fields() -> [FormField; 5] {
    let [key_spend, window] = KEY_SPEND;
    [
        FormField::new("name", "Name", FieldKind::Text).hint("Your customer's, unique."),
        FormField::optional("external_id", "External id", FieldKind::Text)
            .hint("Id that your own system has for the customer, unique."),
        FormField::optional("low_balance", "Low-balance threshold", FieldKind::Amount).hint(
            "Sends wallet.low when the balance falls below this amount. 0: when it is empty.",
        ),
        FormField::optional(key_spend, "A key may spend at most", FieldKind::Amount).hint(
            "Bound of keys that are issued by others than an owner or the holder's administrator. \
             Without one they issue none.",
        ),
        FormField::new(window, "Within", windows()).value("month"),
    ]
}
