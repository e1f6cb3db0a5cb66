//! The form that edits a wallet. It carries the number of edits that it was opened at: what somebody else changed
//! since is not overwritten.

use async_trait::async_trait;
use holdfast_accounts::{Edit, Reference, Request};
use holdfast_domain::admin::{UseCase, WalletRecord};

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::FormField;
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::wallet::create::{fields as wallet_fields, settings};
use crate::pages::wallet::form_page;

/// The form of one wallet.
#[derive(Debug)]
pub(crate) struct EditWallet {
    wallet: WalletRecord,
}

#[async_trait]
impl FormPage for EditWallet {
    const USE_CASE: UseCase = UseCase::WalletUpdate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = Reference::Id(sheet.id()?);
        let wallet = sheet.desk.accounts.wallet(&sheet.visitor.principal, &id).await?;
        Ok(Self { wallet })
    }

    fn frame(&self) -> FormFrame {
        let record = &self.wallet;
        let [name, external_id, low_balance, key_spend, window] = wallet_fields();
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
        let page = form_page("Edit", record);
        FormFrame { page, fields, submit: "Save".to_owned(), is_grave: false }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let patch = settings(fields)?;
        let edit = Edit { patch, expected: Some(fields.want("edited")?) };
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        accounts.edit_wallet(&sheet.visitor.principal, request, &id, edit).await?;
        Ok(FormOutcome::done().next(format!("/wallets/{}", self.wallet.wallet.id)))
    }
}
