//! The form that closes a wallet. Closing is for good: it is shown before it is done.

use holdfast_accounts::Reference;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyState, Order, PAGE_MAX, PageRequest};

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{Cell, Facts, FormField, Visit};
use crate::pages::parts::wallet::{framed, opened};

/// The form that closes an empty wallet for good.
pub(crate) struct CloseWallet {
    wallet: WalletRecord,
    /// API keys in force; at most as many as a page has.
    keys: usize,
}

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

    fn frame(&self, form: FormFrame) -> FormFrame {
        framed(form, &self.wallet).fields([FormField::reason()])
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
            ("Revoked API keys", Cell::count(self.keys)),
        ];
        Ok(FormOutcome::done().section(Facts::new("Closing", rows)))
    }
}
