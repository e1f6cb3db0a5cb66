//! The form that adds funds to a wallet.

use async_trait::async_trait;
use holdfast_accounts::{ExternalId, Note, PostingOrder, Reference, Request, Source};
use holdfast_domain::Micros;
use holdfast_domain::admin::{DepositReference, PostingDetails, UseCase, WalletRecord};

use crate::ask::SentFields;
use crate::cell::Cell;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::wallet::form_page;
use crate::section::Facts;

const SOURCE: &str = "source";
const REFERENCE: &str = "external_reference";

/// The payment that a deposit comes from, where one is named: its source and its id there.
fn reference(fields: &SentFields) -> Result<Option<DepositReference>, Failure> {
    let source: Option<Source> = fields.read(SOURCE)?;
    let id: Option<ExternalId> = fields.read(REFERENCE)?;
    match (source, id) {
        (None, None) => Ok(None),
        (Some(source), Some(id)) => {
            Ok(Some(DepositReference::new(source.as_typed(), id.as_typed())))
        }
        (Some(_), None) => Err(Failure::field(REFERENCE, "Write the payment's id there too.")),
        (None, Some(_)) => Err(Failure::field(SOURCE, "Name the system that has this id.")),
    }
}

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
                FormField::new("amount", &amount, FieldKind::Amount),
                FormField::optional(SOURCE, "Came through", FieldKind::Text)
                    .hint("The system that took the money, like stripe or bank."),
                FormField::optional(REFERENCE, "Reference there", FieldKind::Text)
                    .hint("Id of the payment there: one payment is booked once, by whoever and however often."),
                FormField::optional("note", "Note", FieldKind::Text)
                    .hint("For whoever reads the statement: an invoice, a bank transfer."),
            ],
            submit: "Deposit".to_owned(),
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
        let reference = reference(fields)?;
        let told = reference.as_ref().map(|it| format!("{} {}", it.source, it.external_reference));
        let details = PostingDetails {
            reference,
            note: note.map(|note| note.as_str().to_owned()),
            ..PostingDetails::default()
        };
        let id = Reference::Id(sheet.id()?);
        let order = PostingOrder { amount, currency: None, details };
        let accounts = &sheet.desk.accounts;
        let made = accounts.deposit(&sheet.visitor.principal, request, &id, order).await?;
        let wallet = &made.thing.wallet.wallet;
        let afterwards = wallet.available.plus(amount).unwrap_or(Micros::MAX);
        let rows = vec![
            ("To", Cell::text(&wallet.name)),
            ("Amount", Cell::money(amount, wallet.currency)),
            ("Available now", Cell::money(wallet.available, wallet.currency)),
            ("Available afterwards", Cell::money(afterwards, wallet.currency)),
            ("Reference", Cell::some_text(told.as_deref())),
            ("Note", Cell::some_text(fields.get("note"))),
        ];
        Ok(FormOutcome::done().section(Facts::new("Deposit", rows)))
    }
}
