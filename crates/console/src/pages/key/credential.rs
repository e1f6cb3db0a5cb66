//! The forms that issue an API key, and that give one another credential and end the others after a grace. The secret
//! is shown in the answer to the form, once.

use holdfast_accounts::fields::members;
use holdfast_accounts::{KeyOrder, Reference};
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::credential::{ApiKey, Grant};

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::value::{grace, graces};
use crate::kit::{FormField, Visit, isolated};
use crate::pages::key::grant;
use crate::pages::key::secret::shown_once;
use crate::pages::parts::api_key::{framed, opened};
use crate::pages::parts::reference::{self, WALLET, to_wallet, wallet_names};

/// Spans for which the other credentials stay, in seconds.
const GRACES: [(u64, &str); 4] =
    [(0, "end at once"), (3_600, "stay an hour"), (86_400, "stay a day"), (604_800, "stay a week")];

/// The form that issues a key, of one wallet if its address names one.
pub(crate) struct IssueKey {
    wallet: Option<WalletRecord>,
    /// Names of wallets to choose from.
    wallets: Vec<String>,
    offered: Vec<String>,
    bound: Option<String>,
    is_own: bool,
}

impl FormPage for IssueKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let principal = visit.principal();
        let own = principal.only_wallet().map(to_wallet);
        let asked = visit.query.read::<Reference>(WALLET)?;
        // A holder has one wallet, which the address need not name.
        let wallet = match asked.or(own) {
            Some(reference) => Some(visit.accounts().wallet(principal, &reference).await?),
            None => None,
        };
        let bound = wallet.as_ref().and_then(|wallet| grant::bound(principal, wallet));
        let is_own = principal.role.is_holder();
        let wallets = if wallet.is_none() { wallet_names(visit).await? } else { Vec::new() };
        Ok(Self { wallet, wallets, offered: grant::offered(visit), bound, is_own })
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let form = form.below("API keys", "/keys");
        let form = match &self.wallet {
            Some(WalletRecord { wallet, .. }) => form
                .intro(format!("Wallet: {}, {}", isolated(&wallet.name), wallet.currency))
                .fields([FormField::hidden_value(WALLET, &wallet.id.to_string())]),
            None => form.fields([
                FormField::text(&members::KEY_WALLET).suggesting(self.wallets.iter().cloned())
            ]),
        };
        form.fields([&members::KEY_NAME, &members::KEY_EXTERNAL_ID].map(FormField::text))
            .fields(grant::fields(&Grant::default(), &self.offered, self.bound.clone()))
            .fields(reason(self.is_own))
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
        Ok(shown_once(issued, &self.offered, &visit.shared.options.base_url))
    }
}

/// The form that rotates a key.
pub(crate) struct RotateKey {
    key: ApiKey,
    offered: Vec<String>,
    is_own: bool,
}

impl FormPage for RotateKey {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let (key, is_own) = (opened(visit).await?, visit.principal().role.is_holder());
        Ok(Self { key, offered: grant::offered(visit), is_own })
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let grace = FormField::of(&members::KEY_GRACE, graces(&GRACES)).value("86400");
        framed(form, &self.key).fields([grace]).fields(reason(self.is_own))
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let (id, grace) = (Reference::Id(visit.id()?), grace(&sent.fields, &GRACES)?);
        let accounts = visit.accounts();
        let rotated = accounts.rotate_api_key(visit.principal(), &sent.request, &id, grace).await?;
        Ok(shown_once(&rotated.thing, &self.offered, &visit.shared.options.base_url))
    }
}

/// The reason that an operator gives.
fn reason(is_own: bool) -> Option<FormField> {
    (!is_own).then(|| FormField::text(&members::KEY_REASON))
}
