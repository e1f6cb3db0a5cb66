//! `holdfast wallet deposit`, `refund` and `adjust`: a posting is in the book at most once, under the
//! key of its command.

use anyhow::{Context, anyhow};
use holdfast_accounts::{
    AccountsError, ExternalId, Note, Outcome, PostingRecord, Reason, Request, Source,
};
use holdfast_config::Config;
use holdfast_domain::account::{AccountRefusal, DepositReference, PostingDetails};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::operation::Phase;
use holdfast_domain::{Currency, Journal as _, OperationId, PostingId};
use holdfast_store::Store;
use holdfast_wire::api::PostingView;
use uuid::Uuid;

use super::find;
use crate::accounts::{LocalAccounts, Undone, request};
use crate::cli;
use crate::failure::CommandFailure;
use crate::output::{Output, note};

/// Makes a posting.
pub(super) async fn post(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::NewPosting,
) -> Result<(), CommandFailure> {
    let local = LocalAccounts::to_change(config, store).await?;
    let LocalAccounts { accounts, principal } = &local;
    match command {
        cli::NewPosting::Deposit { wallet, amount, source, reference, reason, note, key } => {
            let wallet = find(store, &wallet).await?;
            let (id, micros) = (wallet.wallet.id.to_string(), amount.micros().get().to_string());
            let said =
                beside(source.as_ref().map(Source::as_str), reference.as_ref(), note.as_ref());
            let why = reason.as_ref().map_or("", Reason::as_str);
            let words = ["deposit", &id, &micros, &said, why];
            let asked = request(key.uuid, &words, reason.as_ref());
            let reference = Some(deposit_reference(&asked, source, reference));
            let details = PostingDetails { reference, ..details(reason, note) };
            let wallet_ref = holdfast_accounts::Reference::Id(uuid(wallet.wallet.id.to_bytes()));
            let done =
                accounts.deposit(principal, &asked, &wallet_ref, amount.micros(), details).await;
            let currency = Some(wallet.wallet.currency);
            shown(output, &local, &asked, ("nothing was deposited", currency), done).await
        }
        cli::NewPosting::Adjust { wallet, amount, reason, note, key } => {
            let wallet = find(store, &wallet).await?;
            let (id, micros) = (wallet.wallet.id.to_string(), amount.micros().get().to_string());
            let said = beside(None, None, note.as_ref());
            let words = ["adjust", &id, &micros, &said, reason.as_str()];
            let asked = request(key.uuid, &words, Some(&reason));
            let wallet_ref = holdfast_accounts::Reference::Id(uuid(wallet.wallet.id.to_bytes()));
            let details = details(None, note);
            let done =
                accounts.adjust(principal, &asked, &wallet_ref, amount.micros(), details).await;
            let currency = Some(wallet.wallet.currency);
            shown(output, &local, &asked, ("nothing was adjusted", currency), done).await
        }
        cli::NewPosting::Refund { operation, amount, reason, note, key } => {
            let id = operation.operation();
            let (name, micros) = (id.to_string(), amount.micros().get().to_string());
            let said = beside(None, None, note.as_ref());
            let why = reason.as_ref().map_or("", Reason::as_str);
            let words = ["refund", &name, &micros, &said, why];
            let asked = request(key.uuid, &words, reason.as_ref());
            let currency = refundable(store, id).await?;
            let details = details(reason, note);
            let done = accounts.refund(principal, &asked, id, amount.micros(), details).await;
            shown(output, &local, &asked, ("nothing was refunded", Some(currency)), done).await
        }
    }
}

/// Shows the posting of this id.
pub(super) async fn show(output: Output, store: &Store, id: Uuid) -> Result<(), CommandFailure> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_read(store);
    let found = accounts.posting(&principal, PostingId::from(id)).await;
    let found = found.with_context(|| format!("no posting {id} was shown"))?;
    print(output, &found, false)
}

/// Currency of a charge that can be given back: only a completed operation has one.
async fn refundable(store: &Store, id: OperationId) -> anyhow::Result<Currency> {
    let snapshot = store.load(id).await.context("the operation was not read")?;
    let operation = snapshot.operation.ok_or_else(|| {
        anyhow!(
            "nothing was refunded: there is no operation {id}, `holdfast operation list` shows them"
        )
    })?;
    match &operation.phase {
        Phase::Completed { .. } => Ok(operation.price.currency),
        phase @ (Phase::Leased
        | Phase::Recorded(_)
        | Phase::Open
        | Phase::Refused { .. }
        | Phase::Abandoned { .. }) => Err(anyhow!(
            "nothing was refunded: operation {id} is {}, only a completed one was charged",
            phase.label()
        )),
    }
}

/// Words of a posting beside its money: the same key with others is another request.
fn beside(source: Option<&str>, reference: Option<&ExternalId>, note: Option<&Note>) -> String {
    let reference = reference.map_or("", ExternalId::as_str);
    let words = [source.unwrap_or(""), reference, note.map_or("", Note::as_str)];
    // None of them has a control character.
    words.join("\n")
}

fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}

fn details(reason: Option<Reason>, note: Option<Note>) -> PostingDetails {
    PostingDetails {
        reference: None,
        reason: reason.map(|reason| reason.as_str().to_owned()),
        note: note.map(|note| note.as_str().to_owned()),
    }
}

/// Reference of a deposit. Without one of an outer system it is the command line's own: the key.
fn deposit_reference(
    asked: &Request,
    source: Option<Source>,
    reference: Option<ExternalId>,
) -> DepositReference {
    match source.zip(reference) {
        Some((source, reference)) => DepositReference {
            source: source.as_str().to_owned(),
            external_reference: reference.as_str().to_owned(),
        },
        None => {
            let external_reference = asked.key.to_string();
            DepositReference { source: "cli".to_owned(), external_reference }
        }
    }
}

/// Shows a posting that is made, or says why there is none.
async fn shown(
    output: Output,
    local: &LocalAccounts,
    asked: &Request,
    (nothing, currency): (&str, Option<Currency>),
    done: Result<Outcome<PostingRecord>, AccountsError>,
) -> Result<(), CommandFailure> {
    let undone = Undone { nothing, key: asked.key, currency };
    match done {
        Ok(Outcome { thing, replayed }) => print(output, &thing, replayed),
        Err(AccountsError::Refused(AccountRefusal::RequestKeyConflict)) => {
            // The id of a posting is its key: what is there says more than that there is something.
            let id = PostingId::from_bytes(asked.key.to_bytes());
            let known = local.accounts.posting(&local.principal, id).await;
            let refusal = known.map_or(AccountRefusal::RequestKeyConflict, |known| {
                AccountRefusal::PostingConflict(known.posting)
            });
            Err(undone.because(AccountsError::Refused(refusal)))
        }
        Err(error) => Err(undone.because(error)),
    }
}

fn print(output: Output, record: &PostingRecord, replayed: bool) -> Result<(), CommandFailure> {
    let PostingRecord { posting, wallet } = record;
    let kind = posting.kind.label();
    let mut fields = vec![(kind, posting.id.to_string())];
    match &posting.kind {
        PostingKind::Deposit => {}
        PostingKind::Refund(operation) => fields.push(("operation", operation.to_string())),
        PostingKind::Adjustment(reason) => fields.push(("reason", reason.clone())),
    }
    fields.extend([
        ("wallet", wallet.wallet.name.clone()),
        ("amount", posting.amount.to_string()),
        ("currency", wallet.wallet.currency.to_string()),
        ("available", wallet.wallet.available.to_string()),
    ]);
    output.object(&PostingView::of(posting, replayed), &fields)?;
    if replayed {
        note(&format!("this {kind} had been made before: nothing was changed"));
    }
    Ok(())
}
