//! A wallet's settings: the forms that make a wallet and edit it, and the lines of its page that show them. The form
//! that edits carries the number of edits that it was opened at: what another person changed since is not overwritten.

use holdfast_accounts::fields::members;
use holdfast_accounts::{Edit, ExternalId, Name, NewWallet, Reference};
use holdfast_domain::admin::{WalletPatch, WalletRecord};

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::value::{spend, spend_text, threshold, windows};
use crate::kit::{Cell, FieldKind, FormField, SentFields, Visit};
use crate::pages::parts::wallet::{framed, opened};

/// Names of the two fields of a bound on what keys spend.
const KEY_SPEND: [&str; 2] = ["key_spend", "key_spend_window"];

/// The form that makes a wallet.
pub(crate) struct CreateWallet;

impl FormPage for CreateWallet {
    async fn open(_visit: &Visit) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let [name, rest @ ..] = fields();
        let currency = FormField::text(&members::WALLET_CURRENCY).value("USD");
        form.below("Wallets", "/wallets").fields([name, currency]).fields(rest)
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (name, currency) = (sent.fields.require("name")?, sent.fields.require("currency")?);
        let settings = WalletPatch { name: None, ..settings(&sent.fields)? };
        let new = NewWallet { name, currency, settings };
        let made = visit.accounts().create_wallet(visit.principal(), &sent.request, &new).await?;
        Ok(FormOutcome::done().next(format!("/wallets/{}", made.thing.wallet.id)))
    }
}

/// The form that edits a wallet.
pub(crate) struct EditWallet(WalletRecord);

impl FormPage for EditWallet {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let Self(record) = self;
        let [name, external_id, low_balance, key_spend, window] = fields();
        let amount = |amount: Option<_>| amount.map(|amount| format!("{amount}"));
        let spend = record.key_spend;
        framed(form, record).fields([
            name.value(&record.wallet.name),
            external_id.value(record.external_id.clone().unwrap_or_default()),
            low_balance.value(amount(record.low_balance).unwrap_or_default()),
            key_spend.value(amount(spend.map(|spend| spend.micros)).unwrap_or_default()),
            window.value(spend.map_or("month", |spend| spend.window.label())),
            FormField::hidden_value("edited", &record.edited.to_string()),
        ])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let patch = settings(&sent.fields)?;
        let edit = Edit { patch, expected: Some(sent.fields.require("edited")?) };
        let id = Reference::Id(visit.id()?);
        visit.accounts().edit_wallet(visit.principal(), &sent.request, &id, edit).await?;
        Ok(FormOutcome::done().next(format!("/wallets/{}", self.0.wallet.id)))
    }
}

/// The settings as lines of the wallet's page.
pub(super) fn shown(record: &WalletRecord) -> [(&'static str, Cell); 3] {
    let currency = record.wallet.currency;
    let low = record.low_balance.map_or(Cell::Nothing, |micros| Cell::money(micros, currency));
    let spend = record.key_spend.map(|spend| Cell::text(spend_text(spend, currency)));
    [
        (members::WALLET_LOW_BALANCE.label, low),
        (members::WALLET_KEY_SPEND.label, spend.unwrap_or(Cell::Nothing)),
        (members::WALLET_EXTERNAL_ID.label, Cell::some_text(record.external_id.as_deref())),
    ]
}

/// The settings that the fields of [`fields`] have.
fn settings(fields: &SentFields) -> Result<WalletPatch, Failure> {
    let name: Name = fields.require("name")?;
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
    [
        FormField::text(&members::WALLET_NAME),
        FormField::text(&members::WALLET_EXTERNAL_ID),
        FormField::of(&members::WALLET_LOW_BALANCE, FieldKind::Amount),
        FormField::of(&members::WALLET_KEY_SPEND, FieldKind::Amount),
        FormField::of(&members::WALLET_KEY_SPEND_WINDOW, windows()).value("month"),
    ]
}
