//! The forms that issue an API key, and that give one another credential and end the others after a grace. The secret
//! is told in the answer to the form, once.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_accounts::{KeyOrder, Reference};
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::credential::{ApiKey, Grant};

use crate::failure::Failure;
use crate::kit::field::{Choice, FieldKind, FormField};
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::isolation::isolated;
use crate::kit::page::Page;
use crate::kit::visit::Visit;
use crate::pages::key::grant;
use crate::pages::key::told::told;
use crate::pages::parts::api_key::{form_page, opened};
use crate::pages::parts::reference::{self, WALLET, to_wallet};

const GRACE: &str = "grace_seconds";
/// Spans for which the other credentials stay, in seconds.
const GRACES: [(u64, &str); 4] =
    [(0, "end at once"), (3_600, "stay an hour"), (86_400, "stay a day"), (604_800, "stay a week")];

/// The form that issues a key, of one wallet where its address names one.
pub(crate) struct IssueKey {
    wallet: Option<WalletRecord>,
    offered: Vec<String>,
    bound: Option<String>,
    is_own: bool,
}

#[async_trait]
impl FormPage for IssueKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let principal = visit.principal();
        let own = principal.only_wallet().map(to_wallet);
        let asked = visit.query.read::<Reference>(WALLET)?;
        let wallet = match asked.or(own) {
            Some(reference) => Some(visit.accounts().wallet(principal, &reference).await?),
            None => None,
        };
        let bound = wallet.as_ref().and_then(|wallet| grant::bound(principal, wallet));
        let is_own = principal.role.is_holder();
        Ok(Self { wallet, offered: grant::offered(visit), bound, is_own })
    }

    fn frame(&self) -> FormFrame {
        let mut page = Page::new("Issue an API key").below("API keys", "/keys");
        let wallet = match &self.wallet {
            Some(record) => {
                let (id, name) = (record.wallet.id.to_string(), isolated(&record.wallet.name));
                page = page.intro(format!("Its wallet is {name}, in {}.", record.wallet.currency));
                FormField::hidden_value(WALLET, &id)
            }
            None => FormField::new(WALLET, "Wallet: name or id", FieldKind::Text),
        };
        let mut fields = vec![
            wallet,
            FormField::optional("name", "Name", FieldKind::Text)
                .hint("Unique within the wallet; one is made up where it is missing."),
            FormField::optional("external_id", "External id", FieldKind::Text),
        ];
        fields.extend(grant::fields(&Grant::default(), &self.offered, self.bound.clone()));
        fields
            .extend(told_reason(self.is_own, "The wallet's holder sees that the key was issued."));
        FormFrame::new(page, fields, "Issue the key")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let wallet = reference::wallet(visit, &sent.fields).await?;
        let wallet = wallet.ok_or_else(|| Failure::field(WALLET, "Fill this in."))?;
        let order = KeyOrder {
            name: sent.fields.read("name")?,
            external_id: sent.fields.read("external_id")?,
            grant: grant::read(&sent.fields)?,
        };
        let (accounts, principal) = (visit.accounts(), visit.principal());
        let (wallet, orders) = (to_wallet(wallet), [order]);
        let issued = accounts.issue_api_keys(principal, &sent.request, &wallet, &orders).await?;
        let issued = issued.thing.first().ok_or_else(Failure::not_found)?;
        Ok(told(issued, &self.offered, &visit.desk.options.base_url))
    }
}

/// The form that rotates a key.
pub(crate) struct RotateKey {
    key: ApiKey,
    offered: Vec<String>,
    is_own: bool,
}

#[async_trait]
impl FormPage for RotateKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let (key, is_own) = (opened(visit).await?, visit.principal().role.is_holder());
        Ok(Self { key, offered: grant::offered(visit), is_own })
    }

    fn frame(&self) -> FormFrame {
        let choices = GRACES.iter().map(|(span, label)| Choice::new(span.to_string(), *label));
        let grace = FieldKind::Select(choices.collect());
        let grace = FormField::new(GRACE, "The other credentials", grace)
            .value("86400")
            .hint("Programs that still show one of them work as long as it stays.");
        let reason = told_reason(self.is_own, "The wallet's holder sees that the key was rotated.");
        let page = form_page("Rotate", &self.key).intro(
            "The key gets another secret. Its limits, and what its requests are bound to, stay.",
        );
        FormFrame::new(page, [grace].into_iter().chain(reason).collect(), "Rotate the key")
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let seconds: u64 = sent.fields.want(GRACE)?;
        if !GRACES.iter().any(|(span, _)| *span == seconds) {
            return Err(Failure::field(GRACE, "Choose one of these."));
        }
        let (id, grace) = (Reference::Id(visit.id()?), Duration::from_secs(seconds));
        let accounts = visit.accounts();
        let rotated = accounts.rotate_api_key(visit.principal(), &sent.request, &id, grace).await?;
        Ok(told(&rotated.thing, &self.offered, &visit.desk.options.base_url))
    }
}

/// The reason that everybody but the wallet's holder gives.
fn told_reason(is_own: bool, hint: &str) -> Option<FormField> {
    let reason = FormField::new("reason", "Reason", FieldKind::Text);
    (!is_own).then(|| reason.hint(hint))
}
