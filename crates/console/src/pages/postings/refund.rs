//! The form that gives back a part of what an operation was charged.

use async_trait::async_trait;
use holdfast_accounts::{Note, OperationRecord, PostingOrder, Reason, Request};
use holdfast_domain::admin::{PostingDetails, UseCase};
use holdfast_domain::{Currency, Micros, OperationId};

use crate::ask::SentFields;
use crate::cell::Cell;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;
use crate::pages::reference::short;
use crate::section::Facts;

/// The form of one operation.
#[derive(Debug)]
pub(crate) struct Refund {
    record: OperationRecord,
}

impl Refund {
    const fn currency(&self) -> Currency {
        self.record.operation.price.currency
    }

    fn charge(&self) -> Micros {
        self.record.operation.phase.charge().unwrap_or(Micros::ZERO)
    }

    fn left(&self) -> Micros {
        self.charge().minus(self.record.refunded).unwrap_or(Micros::ZERO)
    }
}

#[async_trait]
impl FormPage for Refund {
    const USE_CASE: UseCase = UseCase::PostingRefund;
    const IS_REVIEWED: bool = true;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = OperationId::from(sheet.id()?);
        let record = sheet.desk.accounts.operation(&sheet.visitor.principal, id).await?;
        Ok(Self { record })
    }

    fn frame(&self) -> FormFrame {
        let operation = &self.record.operation;
        let money = |amount| Cell::money(amount, self.currency());
        let rows = vec![
            ("Model", Cell::text(operation.model.as_str())),
            ("Charge", money(self.charge())),
            ("Refunded so far", money(self.record.refunded)),
            ("Left of it", money(self.left())),
        ];
        let amount = format!("Amount in {}", self.currency());
        let amount = FormField::new("amount", &amount, FieldKind::Amount);
        let amount = match self.left() {
            Micros::ZERO => amount.hint("Nothing is left to give back."),
            left => amount.value(left.to_string()),
        };
        FormFrame {
            page: Page::new("Refund an operation")
                .below("Operations", "/operations")
                .below(short(operation.id), format!("/operations/{}", operation.id))
                .section(Facts::new("", rows)),
            fields: vec![
                amount,
                FormField::optional("reason", "Reason", FieldKind::Text),
                FormField::optional("note", "Note", FieldKind::Text)
                    .hint("For whoever reads the statement: a ticket, a conversation."),
            ],
            submit: "Refund".to_owned(),
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
        let details = PostingDetails {
            reference: None,
            reason: request.reason.as_ref().map(Reason::as_str).map(str::to_owned),
            note: note.map(|note| note.as_str().to_owned()),
        };
        let order = PostingOrder { amount, currency: None, details };
        let accounts = &sheet.desk.accounts;
        let id = self.record.operation.id;
        let made = accounts.refund(&sheet.visitor.principal, request, id, order).await?;
        let wallet = &made.thing.wallet.wallet;
        let afterwards = wallet.available.plus(amount).unwrap_or(Micros::MAX);
        let rows = vec![
            ("To", Cell::text(&wallet.name)),
            ("Amount", Cell::money(amount, wallet.currency)),
            ("Available now", Cell::money(wallet.available, wallet.currency)),
            ("Available afterwards", Cell::money(afterwards, wallet.currency)),
            ("Reason", Cell::some_text(fields.get("reason"))),
            ("Note", Cell::some_text(fields.get("note"))),
        ];
        Ok(FormOutcome::done().section(Facts::new("Refund", rows)))
    }
}
