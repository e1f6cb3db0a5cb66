//! The form that makes a wallet, and the fields that it shares with the one that edits it.

use async_trait::async_trait;
use holdfast_accounts::{ExternalId, Name, NewWallet, Request};
use holdfast_domain::admin::{UseCase, WalletPatch};

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;
use crate::value::{spend, threshold, windows};

/// Names of the two fields of a bound on what keys spend.
pub(crate) const KEY_SPEND: [&str; 2] = ["key_spend", "key_spend_window"];

/// The form.
#[derive(Debug)]
pub(crate) struct Create;

#[async_trait]
impl FormPage for Create {
    const USE_CASE: UseCase = UseCase::WalletCreate;

    async fn open(_sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn frame(&self) -> FormFrame {
        let [name, external_id, low_balance, key_spend, window] = fields();
        let currency = FormField::new("currency", "Currency", FieldKind::Text);
        let currency = currency.value("USD").hint("Three capital letters. It stays for ever.");
        FormFrame {
            page: Page::new("Make a wallet").below("Wallets", "/wallets"),
            fields: vec![name, currency, external_id, low_balance, key_spend, window],
            submit: "Make the wallet".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (name, currency) = (fields.want("name")?, fields.want("currency")?);
        let settings = WalletPatch { name: None, ..settings(fields)? };
        let new = NewWallet { name, currency, settings };
        let made =
            sheet.desk.accounts.create_wallet(&sheet.visitor.principal, request, &new).await?;
        Ok(FormOutcome::done().next(format!("/wallets/{}", made.thing.wallet.id)))
    }
}

/// The settings that the fields of [`fields`] have.
pub(crate) fn settings(fields: &SentFields) -> Result<WalletPatch, Failure> {
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
pub(crate) fn fields() -> [FormField; 5] {
    let [key_spend, window] = KEY_SPEND;
    [
        FormField::new("name", "Name", FieldKind::Text).hint("Your customer's, unique."),
        FormField::optional("external_id", "External id", FieldKind::Text)
            .hint("Id that your own system has for the customer, unique."),
        FormField::optional("low_balance", "Runs low below", FieldKind::Amount)
            .hint("An event tells it once the wallet has less. 0 tells that it is empty."),
        FormField::optional(key_spend, "A key may spend at most", FieldKind::Amount).hint(
            "Bound of keys that are issued by others than an owner or the holder's administrator. \
             Without one they issue none.",
        ),
        FormField::new(window, "Within", windows()).value("month"),
    ]
}
