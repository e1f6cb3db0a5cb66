//! The form that issues an API key. Its secret is told in the answer to the form, once.

use async_trait::async_trait;
use holdfast_accounts::{ExternalId, KeyOrder, Name, Reference, Request};
use holdfast_domain::admin::{UseCase, WalletRecord};
use holdfast_domain::credential::Grant;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::isolation::isolated;
use crate::page::Page;
use crate::pages::key::grant;
use crate::pages::key::told::told;
use crate::pages::reference::{self, WALLET, to_wallet};

/// The form, of one wallet where its address names one.
#[derive(Debug)]
pub(crate) struct IssueKey {
    wallet: Option<WalletRecord>,
    offered: Vec<String>,
    bound: Option<String>,
    is_own: bool,
}

#[async_trait]
impl FormPage for IssueKey {
    const USE_CASE: UseCase = UseCase::ApiKeyIssue;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let (desk, principal) = (&sheet.desk, &sheet.visitor.principal);
        let own = principal.only_wallet().map(to_wallet);
        let asked = sheet.query.read::<Reference>(WALLET)?;
        let wallet = match asked.or(own) {
            Some(reference) => Some(desk.accounts.wallet(principal, &reference).await?),
            None => None,
        };
        let bound = wallet.as_ref().and_then(|wallet| grant::bound(principal, wallet));
        let is_own = principal.role.is_holder();
        Ok(Self { wallet, offered: grant::offered(desk, principal), bound, is_own })
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
        if !self.is_own {
            let reason = FormField::new("reason", "Reason", FieldKind::Text);
            fields.push(reason.hint("The wallet's holder sees that the key was issued."));
        }
        FormFrame { page, fields, submit: "Issue the key".to_owned(), is_grave: false }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let wallet = reference::wallet(&sheet.desk, &sheet.visitor, fields).await?;
        let wallet = wallet.ok_or_else(|| Failure::field(WALLET, "Fill this in."))?;
        let name: Option<Name> = fields.read("name")?;
        let external_id: Option<ExternalId> = fields.read("external_id")?;
        let order = KeyOrder { name, external_id, grant: grant::read(fields)? };
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        let wallet = to_wallet(wallet);
        let issued = accounts.issue_api_keys(principal, request, &wallet, &[order]).await?;
        let issued = issued.thing.first().ok_or_else(Failure::not_found)?;
        Ok(told(issued, &self.offered, &sheet.desk.options.base_url))
    }
}
