//! The form that closes a wallet. Closing is for good: it is shown before it is done.

use async_trait::async_trait;
use holdfast_accounts::Reference;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyState, Order, PAGE_MAX, PageRequest};

use crate::failure::Failure;
use crate::kit::cell::{Cell, Tone};
use crate::kit::field::FormField;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::section::{Facts, Notice};
use crate::kit::visit::Visit;
use crate::pages::parts::wallet::{form_page, opened};

/// The form that closes an empty wallet for good.
pub(crate) struct CloseWallet {
    wallet: WalletRecord,
    /// API keys in force; as many as a page has, where there are more.
    keys: usize,
}

#[async_trait]
impl FormPage for CloseWallet {
    const IS_REVIEWED: bool = true;

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let wallet = opened(visit).await?;
        let state = Some(ApiKeyState::InForce);
        let filter =
            ApiKeyFilter { wallet: Some(wallet.wallet.id), state, ..ApiKeyFilter::default() };
        let page = PageRequest::first(Order::Newest, PAGE_MAX);
        let keys = visit.accounts().api_keys(visit.principal(), filter, page).await?;
        Ok(Self { wallet, keys: keys.rows.len() })
    }

    fn frame(&self) -> FormFrame {
        let page = form_page("Close", &self.wallet).intro(
            "For good: a closed wallet takes no money and no key, and its API keys are revoked. \
             Only an empty wallet is closed.",
        );
        FormFrame::new(page, vec![FormField::reason()], "Close the wallet").grave()
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let id = Reference::Id(visit.id()?);
        let accounts = visit.accounts();
        accounts.close_wallet(visit.principal(), &sent.request, &id).await?;
        let wallet = &self.wallet.wallet;
        let rows = vec![
            ("Wallet", Cell::text(&wallet.name)),
            ("Available", Cell::money(wallet.available, wallet.currency)),
            ("Held", Cell::money(wallet.held, wallet.currency)),
            ("API keys that are revoked", Cell::count(self.keys)),
        ];
        let warning = Notice::new(Tone::Warning, "Nobody can open it again.");
        Ok(FormOutcome::done().section(Facts::new("Closing", rows)).section(warning))
    }
}
