//! Flash: what a change did, above the page that follows it.
//!
//! ```text
//! POST /keys/ID/suspend?key=K ─▶ 303 /keys/ID?done=K&did=api_key.suspend ─▶ "API key production suspended. [Resume]"
//! ```
//!
//! The address carries the request key and the use case. What is said of them is read from the request's record, which
//! only its own sender has, so that a made-up address says nothing. Money has the balance of now beside it.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_accounts::{Accounts, AccountsError, PostingRecord, VERBS};
use holdfast_domain::CommandKey;
use holdfast_domain::Micros;
use holdfast_domain::admin::{RequestRecord, Thing, UseCase};
use holdfast_domain::ledger::PostingKind;
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::address::{noun, of_thing, with_query};
use crate::kit::ask::SentFields;
use crate::kit::cell::{Tone, money};
use crate::kit::desk::Desk;
use crate::kit::isolation::isolated;
use crate::kit::page::Page;
use crate::kit::section::Notice;
use crate::kit::visitor::Visitor;

const DONE: &str = "done";
const DID: &str = "did";
/// Verbs that take back what another one did, with their titles.
const WAYS_BACK: &[(UseCase, UseCase)] = &[
    (UseCase::WalletSuspend, UseCase::WalletResume),
    (UseCase::ApiKeySuspend, UseCase::ApiKeyResume),
    (UseCase::WebhookDisable, UseCase::WebhookEnable),
];

/// Address of the page that follows a change, which says what was done.
pub(crate) fn address(next: &str, key: &str, use_case: UseCase) -> String {
    with_query(next, &[(DONE, Some(key)), (DID, Some(use_case.label()))])
}

/// Puts the flash of its address above a page.
pub(crate) async fn show(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    let query = SentFields::parse(request.uri().query().unwrap_or_default().as_bytes());
    let key = query.get(DONE).and_then(|key| Uuid::try_parse(key).ok()).map(CommandKey::from);
    let use_case = query.get(DID).and_then(UseCase::from_label);
    let visitor = request.extensions().get::<Visitor>().cloned();
    let mut answer = next.run(request).await;
    let (Some(key), Some(use_case), Some(visitor)) = (key, use_case, visitor) else {
        return answer;
    };
    if let Some(page) = answer.extensions_mut().get_mut::<Page>() {
        match of_key(&desk.accounts, &visitor, key, use_case).await {
            Ok(notice) => page.sections.splice(0..0, notice.map(Into::into)).for_each(drop),
            Err(failure) => tracing::debug!(failure.message, "a change has no flash"),
        }
    }
    answer
}

async fn of_key(
    accounts: &Accounts,
    visitor: &Visitor,
    key: CommandKey,
    use_case: UseCase,
) -> Result<Option<Notice>, Failure> {
    match accounts.request_record(&visitor.principal, key).await? {
        Some(record) => notice(accounts, visitor, &record, use_case).await.map(Some),
        None => Ok(None),
    }
}

/// What a request did: the amount that moved and the balance of now, or the resource and its verb; and ways on.
pub(crate) async fn notice(
    accounts: &Accounts,
    visitor: &Visitor,
    record: &RequestRecord,
    use_case: UseCase,
) -> Result<Notice, Failure> {
    let principal = &visitor.principal;
    for thing in &record.things {
        let Thing::Posting(id) = thing else { continue };
        return match accounts.posting(principal, *id).await {
            Ok(posting) => Ok(moved(&posting)),
            Err(AccountsError::NotFound(_) | AccountsError::Forbidden { .. }) => continue,
            Err(error) => Err(error.into()),
        };
    }
    let Some(thing) = record.things.first().copied() else {
        return Ok(Notice::new(Tone::Good, "Done."));
    };
    let names = accounts.names(principal, [thing].into()).await?;
    let name = names.get(&thing).map(|name| format!(" {}", isolated(name))).unwrap_or_default();
    let text = match participle(use_case) {
        Some(done) => format!("{}{name} {done}.", noun(thing)),
        None => format!("{}{name}: done.", noun(thing)),
    };
    let mut notice = Notice::new(Tone::Good, text);
    if let Some(page) = of_thing(thing) {
        let back = WAYS_BACK.iter().find(|(it, back)| *it == use_case && visitor.may(*back));
        let verb = back.and_then(|(_, back)| VERBS.iter().find(|verb| verb.use_case == *back));
        if let Some(verb) = verb {
            notice = notice.link(verb.title, format!("{page}/{}", verb.word));
        }
    }
    Ok(notice)
}

fn moved(PostingRecord { listing, wallet }: &PostingRecord) -> Notice {
    let (posting, wallet) = (&listing.posting, &wallet.wallet);
    let (name, amount) = (isolated(&wallet.name), money(posting.amount, wallet.currency));
    let available = money(wallet.available, wallet.currency);
    let moved = match &posting.kind {
        PostingKind::Deposit => format!("{amount} deposited to {name}."),
        PostingKind::Refund(_) => format!("{amount} refunded to {name}."),
        PostingKind::Adjustment(_) if posting.amount < Micros::ZERO => {
            format!("Balance of {name} adjusted by {amount}.")
        }
        PostingKind::Adjustment(_) => format!("Balance of {name} adjusted by +{amount}."),
    };
    let notice = Notice::new(Tone::Good, format!("{moved} Available {available}."));
    let notice = match &posting.kind {
        PostingKind::Refund(id) => notice.link("View request", format!("/operations/{id}")),
        PostingKind::Deposit | PostingKind::Adjustment(_) => notice,
    };
    notice
        .link("View payment", format!("/postings/{}", posting.id))
        .link("View wallet", format!("/wallets/{}", wallet.id))
}

/// Participle of a change; `None` for one that has none.
fn participle(use_case: UseCase) -> Option<&'static str> {
    if let Some(verb) = VERBS.iter().find(|verb| verb.use_case == use_case) {
        return Some(verb.done);
    }
    let (_resource, verb) = use_case.label().split_once('.')?;
    Some(match verb {
        "create" => "created",
        "update" => "updated",
        "close" => "closed",
        "issue" => "issued",
        "rotate" => "rotated",
        "revoke" => "revoked",
        "invite" => "invited",
        "link" => "has a new link",
        "end" => "ended",
        "cancel" => "asked to end",
        "reconcile" => "reconciled",
        "test" => "sent a test event",
        "resend" => "sent the event again",
        _other => return None,
    })
}
