//! The forms that move money: deposit, adjustment, refund. Each shows what it comes to before it is made.

use holdfast_accounts::fields::members::{self, Member};
use holdfast_accounts::{ExternalId, Note, OperationRecord, Outcome, PostingOrder, PostingRecord};
use holdfast_accounts::{Reason, Reference, Source};
use holdfast_domain::admin::{DepositReference, PostingDetails, WalletRecord};
use holdfast_domain::{Currency, Micros};

use crate::failure::{Failure, FieldRefusal};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{Cell, Facts, FieldKind, FormField, Visit};
use crate::pages::parts::{operation, wallet};

const SOURCE: &str = "source";
const REFERENCE: &str = "external_reference";

/// The form that adds funds to a wallet.
pub(crate) struct Deposit(WalletRecord);

impl FormPage for Deposit {
    const IS_REVIEWED: bool = true;

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(wallet::opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let texts = [&members::SOURCE, &members::REFERENCE, &members::NOTE].map(FormField::text);
        let amount = amount_field(&members::AMOUNT, self.0.wallet.currency);
        wallet::framed(form, &self.0).fields([amount]).fields(texts)
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let mut order = order(sent, PostingDetails::default())?;
        order.details.reference = reference(sent)?;
        let reference = order.details.reference.as_ref();
        let named = reference.map(|it| format!("{} {}", it.source, it.external_reference));
        let (id, amount) = (Reference::Id(visit.id()?), order.amount);
        let made = visit.accounts().deposit(visit.principal(), &sent.request, &id, order).await?;
        let more = vec![("Reference", Cell::some_text(named.as_deref())), note_row(sent)];
        Ok(review(("Deposit", "To"), &made, amount, more))
    }
}

/// The payment that a deposit comes from, if one is named: its payment system and its id there.
fn reference(sent: &Submission) -> Result<Option<DepositReference>, Failure> {
    let source: Option<Source> = sent.fields.read(SOURCE)?;
    let id: Option<ExternalId> = sent.fields.read(REFERENCE)?;
    // Both or neither: by the pair a payment from outside is booked once, however it comes.
    match (source, id) {
        (None, None) => Ok(None),
        (Some(source), Some(id)) => {
            Ok(Some(DepositReference::new(source.as_typed(), id.as_typed())))
        }
        (Some(_), None) => Err(Failure::field(REFERENCE, FieldRefusal::ReferenceMissing)),
        (None, Some(_)) => Err(Failure::field(SOURCE, FieldRefusal::SourceMissing)),
    }
}

/// The form that corrects what is available, for a reason.
pub(crate) struct Adjust(WalletRecord);

impl FormPage for Adjust {
    const IS_REVIEWED: bool = true;

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(wallet::opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let wallet = &self.0.wallet;
        let available = Cell::money(wallet.available, wallet.currency);
        wallet::framed(form, &self.0)
            .section(Facts::new("", vec![("Available", available)]))
            .fields([amount_field(&members::ADJUSTMENT, wallet.currency)])
            .fields([&members::ADJUSTMENT_REASON, &members::NOTE].map(FormField::text))
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let order = order(sent, PostingDetails::default())?;
        let (id, amount) = (Reference::Id(visit.id()?), order.amount);
        let made = visit.accounts().adjust(visit.principal(), &sent.request, &id, order).await?;
        Ok(review(("Adjustment", "Wallet"), &made, amount, vec![reason_row(sent)]))
    }
}

/// The form that gives back a part of what an operation was charged.
pub(crate) struct Refund(OperationRecord);

impl Refund {
    fn charge(&self) -> Micros {
        self.0.operation.phase.charge().unwrap_or(Micros::ZERO)
    }

    fn left(&self) -> Micros {
        self.charge().minus(self.0.refunded).unwrap_or(Micros::ZERO)
    }
}

impl FormPage for Refund {
    const IS_REVIEWED: bool = true;

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        Ok(Self(operation::opened(visit).await?))
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let operation = &self.0.operation;
        let currency = operation.price.currency;
        let money = |amount| Cell::money(amount, currency);
        let rows = vec![
            ("Model", Cell::text(operation.model.as_str())),
            ("Charge", money(self.charge())),
            ("Refunded so far", money(self.0.refunded)),
            ("Left of it", money(self.left())),
        ];
        let left = Some(self.left()).filter(|left| *left > Micros::ZERO);
        let amount = amount_field(&members::AMOUNT, currency);
        let amount = amount.value(left.map(|left| left.to_string()).unwrap_or_default());
        form.below("Requests", "/operations")
            .below("Request", format!("/operations/{}", operation.id))
            .section(Facts::new("", rows))
            .fields([amount, FormField::reason(), FormField::text(&members::NOTE)])
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let reason = sent.request.reason.as_ref().map(Reason::as_str).map(str::to_owned);
        let order = order(sent, PostingDetails { reason, ..PostingDetails::default() })?;
        let (id, amount) = (self.0.operation.id, order.amount);
        let made = visit.accounts().refund(visit.principal(), &sent.request, id, order).await?;
        Ok(review(("Refund", "To"), &made, amount, vec![reason_row(sent), note_row(sent)]))
    }
}

fn amount_field(member: &Member, currency: Currency) -> FormField {
    let field = FormField::of(member, FieldKind::Amount);
    FormField { label: format!("{} in {currency}", field.label), ..field }
}

/// The order of the amount and the note of a form.
fn order(sent: &Submission, details: PostingDetails) -> Result<PostingOrder, Failure> {
    let amount: Micros = sent.fields.require("amount")?;
    let note: Option<Note> = sent.fields.read("note")?;
    let note = note.map(|note| note.as_str().to_owned());
    Ok(PostingOrder { amount, currency: None, details: PostingDetails { note, ..details } })
}

fn reason_row(sent: &Submission) -> (&'static str, Cell) {
    ("Reason", Cell::some_text(sent.fields.get("reason")))
}

fn note_row(sent: &Submission) -> (&'static str, Cell) {
    ("Note", Cell::some_text(sent.fields.get("note")))
}

/// Outcome of a form under this title: the wallet under this name, its balance now and afterwards, and more.
fn review(
    (title, name): (&str, &str),
    made: &Outcome<PostingRecord>,
    amount: Micros,
    more: Vec<(&str, Cell)>,
) -> FormOutcome {
    let wallet = &made.thing.wallet.wallet;
    let afterwards = wallet.available.plus(amount).unwrap_or(Micros::MAX);
    let mut rows = vec![
        (name, Cell::text(&wallet.name)),
        ("Amount", Cell::money(amount, wallet.currency)),
        ("Available now", Cell::money(wallet.available, wallet.currency)),
        ("Available afterwards", Cell::money(afterwards, wallet.currency)),
    ];
    rows.extend(more);
    FormOutcome::done().section(Facts::new(title, rows))
}
