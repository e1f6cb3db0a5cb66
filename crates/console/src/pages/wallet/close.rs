//! The form that closes a wallet. Closing is for good: it is shown before it is done.

use async_trait::async_trait;
use holdfast_accounts::{Reference, Request};
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyState, Order, PAGE_MAX, PageRequest};
use holdfast_domain::admin::{UseCase, WalletRecord};

use crate::ask::SentFields;
use crate::cell::{Cell, Tone};
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::wallet::form_page;
use crate::section::{Facts, Notice};

/// The form that closes an empty wallet for good.
#[derive(Debug)]
pub(crate) struct CloseWallet {
    wallet: WalletRecord,
    /// API keys in force; as many as a page has, where there are more.
    keys: usize,
}

#[async_trait]
impl FormPage for CloseWallet {
    const USE_CASE: UseCase = UseCase::WalletClose;
    const IS_REVIEWED: bool = true;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let id = Reference::Id(sheet.id()?);
        let wallet = sheet.desk.accounts.wallet(&sheet.visitor.principal, &id).await?;
        let state = Some(ApiKeyState::InForce);
        let filter =
            ApiKeyFilter { wallet: Some(wallet.wallet.id), state, ..ApiKeyFilter::default() };
        let page = PageRequest::first(Order::Newest, PAGE_MAX);
        let keys = sheet.desk.accounts.api_keys(&sheet.visitor.principal, filter, page).await?;
        Ok(Self { wallet, keys: keys.rows.len() })
    }

    fn frame(&self) -> FormFrame {
        let page = form_page("Close", &self.wallet).intro(
            "For good: a closed wallet takes no money and no key, and its API keys are revoked. \
             Only an empty wallet is closed.",
        );
        let fields = vec![FormField::optional("reason", "Reason", FieldKind::Text)];
        FormFrame { page, fields, submit: "Close the wallet".to_owned(), is_grave: true }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let id = Reference::Id(sheet.id()?);
        let accounts = &sheet.desk.accounts;
        accounts.close_wallet(&sheet.visitor.principal, request, &id).await?;
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
