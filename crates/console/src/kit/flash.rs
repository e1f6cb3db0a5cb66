//! Flash: what a change did, above the page that follows it.
//!
//! ```text
//! POST /keys/ID/suspend?key=K ─▶ 303 /keys/ID?done=K&did=api_key.suspend ─▶ "API key production suspended. [Resume]"
//! ```
//!
//! The address carries the request key and the word of its form ([`FormWords`]). The rest is read from the request's
//! record, which only its own sender has, and for [`SHOWN_FOR`] only, so that a kept or made-up address has no flash.
//! Money has the balance of now beside it.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_accounts::{Accounts, AccountsError, FormWords, PostingRecord, VERBS};
use holdfast_domain::admin::{RequestRecord, ResourceId, UseCase};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::{CommandKey, Micros, Timestamp};
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::{
    ConsoleState, Notice, Page, SentFields, Tone, Visitor, isolated, money, noun, of_thing,
    with_query,
};

const DONE: &str = "done";
const DID: &str = "did";
/// Time after a change in which its flash is shown: it follows at once, and a kept address is news no more.
const SHOWN_FOR: Duration = Duration::from_secs(600);
/// Verbs that take back what another one did, with their titles.
const WAYS_BACK: &[(UseCase, UseCase)] = &[
    (UseCase::WalletSuspend, UseCase::WalletResume),
    (UseCase::ApiKeySuspend, UseCase::ApiKeyResume),
    (UseCase::WebhookDisable, UseCase::WebhookEnable),
];

/// Address of the page that follows a change, with its result.
pub(crate) fn address(next: &str, key: &str, form: Option<FormWords>) -> String {
    with_query(next, &[(DONE, Some(key)), (DID, form.map(FormWords::word))])
}

/// Puts the flash of its address above a page.
pub(crate) async fn show(
    State(shared): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    let query = SentFields::parse(request.uri().query().unwrap_or_default().as_bytes());
    let key = query.get(DONE).and_then(|key| Uuid::try_parse(key).ok()).map(CommandKey::from);
    let form = query.get(DID).and_then(FormWords::named);
    let visitor = request.extensions().get::<Visitor>().cloned();
    let mut answer = next.run(request).await;
    let (Some(key), Some(form), Some(visitor)) = (key, form, visitor) else {
        return answer;
    };
    if let Some(page) = answer.extensions_mut().get_mut::<Page>() {
        match of_key(&shared.accounts, &visitor, key, form).await {
            Ok(notice) => page.sections.splice(0..0, notice.map(Into::into)).for_each(drop),
            // The change is made: a failed page would read as a failed change.
            Err(failure) => tracing::debug!(failure.message, "a change has no flash"),
        }
    }
    answer
}

async fn of_key(
    accounts: &Accounts,
    visitor: &Visitor,
    key: CommandKey,
    form: FormWords,
) -> Result<Option<Notice>, Failure> {
    let Some(record) = accounts.request_record(&visitor.principal, key).await? else {
        return Ok(None);
    };
    if !is_shown(&record, form, accounts.clock().await?) {
        return Ok(None);
    }
    notice(accounts, visitor, &record, Some(form)).await.map(Some)
}

/// True for a change of a moment ago, whose resource is of the form's kind: an address that was kept or made up has
/// no flash.
fn is_shown(record: &RequestRecord, form: FormWords, now: Timestamp) -> bool {
    let is_fresh = now.since(record.at) < SHOWN_FOR;
    // The word in the address is not signed: with that of another kind the sentence would be
    // about a change that was not made.
    is_fresh && record.things.iter().any(|thing| form.is_of(*thing))
}

/// Result of a request: the amount that moved and the balance of now, or the resource and its verb; and ways on.
pub(crate) async fn notice(
    accounts: &Accounts,
    visitor: &Visitor,
    record: &RequestRecord,
    form: Option<FormWords>,
) -> Result<Notice, Failure> {
    let principal = &visitor.principal;
    let done = || Notice::new(Tone::Good, "Done.");
    let Some(form) = form else { return Ok(done()) };
    let Some(thing) = record.things.iter().copied().find(|it| form.is_of(*it)) else {
        return Ok(done());
    };
    if let ResourceId::Posting(id) = thing {
        return match accounts.posting(principal, id).await {
            Ok(posting) => Ok(moved(&posting)),
            // The visitor may use another role by now, which does not reach the posting: no
            // amount then.
            Err(AccountsError::NotFound(_) | AccountsError::Forbidden { .. }) => Ok(done()),
            Err(error) => Err(error.into()),
        };
    }
    let names = accounts.names(principal, [thing].into()).await?;
    let name = names.get(&thing).map(|name| format!(" {}", isolated(name))).unwrap_or_default();
    let text = form.sentence(&format!("{}{name}", noun(thing)));
    let mut notice = Notice::new(Tone::Good, text);
    if let Some(page) = of_thing(thing) {
        let back = WAYS_BACK.iter().find(|(it, back)| *it == form.use_case && visitor.may(*back));
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

#[cfg(test)]
mod tests {
    use holdfast_domain::{ApiKeyId, WalletId};

    use super::*;

    #[test]
    fn a_flash_is_of_a_moment_ago_and_of_the_kind_of_its_outcome() {
        let at = Timestamp::from_micros(0);
        let record =
            |thing| RequestRecord { digest: [0; 32], canonical: None, things: vec![thing], at };
        let key = record(ResourceId::ApiKey(ApiKeyId::from_u128(1)));
        let wallet = record(ResourceId::Wallet(WalletId::from_u128(1)));
        let form = FormWords::named("api_key.suspend").unwrap();
        let minutes = |minutes: u64| at.after(Duration::from_secs(60 * minutes));
        assert!(is_shown(&key, form, minutes(9)));
        assert!(!is_shown(&key, form, minutes(10)));
        assert!(!is_shown(&wallet, form, minutes(0)));
    }
}
