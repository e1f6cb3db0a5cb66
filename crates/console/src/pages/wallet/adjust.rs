//! The form that corrects what is available, for a reason.

use async_trait::async_trait;
use holdfast_accounts::{Note, PostingOrder, Reference, Request};
use holdfast_domain::Micros;
use holdfast_domain::admin::{PostingDetails, UseCase, WalletRecord};

use crate::ask::SentFields;
use crate::cell::Cell;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::wallet::form_page;
use crate::section::Facts;

/// The form of one wallet.
#[derive(Debug)]
pub(crate) struct Adjust {
    wallet: WalletRecord,
}

#[async_trait]
impl FormPage for Adjust {
    const USE_CASE: UseCase = UseCase::PostingAdjust;
    const IS_REVIEWED: bool = true;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = Reference::Id(sheet.id()?);
        let wallet = sheet.desk.accounts.wallet(&sheet.visitor.principal, &id).await?;
        Ok(Self { wallet })
    }

    fn frame(&self) -> FormFrame {
        let wallet = &self.wallet.wallet;
        let available = Cell::money(wallet.available, wallet.currency);
        let amount = format!("Amount in {}", wallet.currency);
        FormFrame {
            page: form_page("Adjust", &self.wallet)
                .section(Facts::new("", vec![("Available", available)])),
            fields: vec![
                FormField::new("amount", &amount, FieldKind::Amount)
                    .hint("Less than nothing takes from the wallet, like -2.50."),
                FormField::new("reason", "Reason", FieldKind::Text)
                    .hint("It stands on the wallet's statement, for its holder too."),
                FormField::optional("note", "Note", FieldKind::Text),
            ],
            submit: "Adjust".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let amount: Micros = fields.want("amount")?;
        let note: Option<Note> = fields.read("note")?;
        let note = note.map(|note| note.as_str().to_owned());
        let order = PostingOrder {
            amount,
            currency: None,
            details: PostingDetails { note, ..PostingDetails::default() },
        };
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        let made = accounts.adjust(&sheet.visitor.principal, request, &id, order).await?;
        let wallet = &made.thing.wallet.wallet;
        let afterwards = wallet.available.plus(amount).unwrap_or(Micros::MAX);
        let rows = vec![
            ("Wallet", Cell::text(&wallet.name)),
            ("Amount", Cell::money(amount, wallet.currency)),
            ("Available now", Cell::money(wallet.available, wallet.currency)),
            ("Available afterwards", Cell::money(afterwards, wallet.currency)),
            ("Reason", Cell::some_text(fields.get("reason"))),
        ];
        Ok(FormOutcome::done().section(Facts::new("Adjustment", rows)))
    }
}
