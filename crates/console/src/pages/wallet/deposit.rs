//! The form that adds funds to a wallet.

use async_trait::async_trait;
use holdfast_accounts::{Note, PostingOrder, Reference, Request};
use holdfast_domain::Micros;
use holdfast_domain::account::{PostingDetails, UseCase, WalletRecord};

use crate::ask::Fields;
use crate::cell::Cell;
use crate::failure::Failure;
use crate::field::{Field, FieldKind};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::wallet::form_page;
use crate::section::Facts;

/// The form of one wallet.
#[derive(Debug)]
pub(crate) struct Deposit {
    wallet: WalletRecord,
}

#[async_trait]
impl FormPage for Deposit {
    const USE_CASE: UseCase = UseCase::PostingDeposit;
    const IS_REVIEWED: bool = true;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = Reference::Id(sheet.id()?);
        let wallet = sheet.desk.accounts.wallet(&sheet.visitor.principal, &id).await?;
        Ok(Self { wallet })
    }

    fn frame(&self) -> FormFrame {
        let wallet = &self.wallet.wallet;
        let amount = format!("Amount in {}", wallet.currency);
        FormFrame {
            page: form_page("Deposit to", &self.wallet),
            fields: vec![
                Field::new("amount", &amount, FieldKind::Amount),
                Field::optional("note", "Note", FieldKind::Text)
                    .hint("For whoever reads the statement: an invoice, a bank transfer."),
            ],
            submit: "Deposit".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &Fields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let amount: Micros = fields.want("amount")?;
        let note: Option<Note> = fields.read("note")?;
        let details = PostingDetails {
            note: note.map(|note| note.as_str().to_owned()),
            ..PostingDetails::default()
        };
        let id = Reference::Id(sheet.id()?);
        let order = PostingOrder { amount, details };
        let accounts = &sheet.desk.accounts;
        let made = accounts.deposit(&sheet.visitor.principal, request, &id, order).await?;
        let wallet = &made.thing.wallet.wallet;
        let afterwards = wallet.available.plus(amount).unwrap_or(Micros::MAX);
        let rows = vec![
            ("To", Cell::text(&wallet.name)),
            ("Amount", Cell::money(amount, wallet.currency)),
            ("Available now", Cell::money(wallet.available, wallet.currency)),
            ("Available afterwards", Cell::money(afterwards, wallet.currency)),
            ("Note", Cell::some_text(fields.get("note"))),
        ];
        Ok(FormOutcome::done().section(Facts::new("Deposit", rows)))
    }
}
