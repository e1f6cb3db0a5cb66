//! The form of each verb of one shape (`holdfast_accounts::VERBS`): a reason, then the resource's page.

use std::fmt::Debug;
use std::marker::PhantomData;

use async_trait::async_trait;
use holdfast_accounts::{Request, Subject, Verb, verbs};
use holdfast_domain::admin::UseCase;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::{key, wallet, webhook};

/// A row of the table of verbs, as a type.
pub(crate) trait VerbRow: Debug + Send + Sync + 'static {
    const VERB: &'static Verb;
}

/// Makes a type of each row: `struct SuspendWallet;` with `VERB = &verbs::SUSPEND_WALLET`.
macro_rules! rows {
    ($($name:ident = $verb:ident),+ $(,)?) => {$(
        #[derive(Debug)]
        pub(crate) struct $name;

        impl VerbRow for $name {
            const VERB: &'static Verb = &verbs::$verb;
        }
    )+};
}

rows! {
    SuspendWallet = SUSPEND_WALLET,
    ResumeWallet = RESUME_WALLET,
    SuspendKey = SUSPEND_API_KEY,
    ResumeKey = RESUME_API_KEY,
    RevokeKey = REVOKE_API_KEY,
    DisableWebhook = DISABLE_WEBHOOK,
    EnableWebhook = ENABLE_WEBHOOK,
}

/// The form of a verb.
#[derive(Debug)]
pub(crate) struct VerbForm<V> {
    subject: Subject,
    verb: PhantomData<V>,
}

#[async_trait]
impl<V: VerbRow> FormPage for VerbForm<V> {
    const USE_CASE: UseCase = V::VERB.use_case;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let accounts = &sheet.desk.accounts;
        let subject = accounts.subject(&sheet.visitor.principal, V::VERB, sheet.id()?).await?;
        Ok(Self { subject, verb: PhantomData })
    }

    fn frame(&self) -> FormFrame {
        let title = V::VERB.title;
        let (page, submit) = match &self.subject {
            Subject::Wallet(it) => (wallet::form_page(title, it), format!("{title} the wallet")),
            Subject::ApiKey(it) => (key::form_page(title, it), format!("{title} the key")),
            Subject::Webhook(it) => {
                let title = format!("{title} the webhook");
                (webhook::form_page(&title, it), title)
            }
        };
        let field = if V::VERB.needs_reason { FormField::new } else { FormField::optional };
        let fields = vec![field("reason", "Reason", FieldKind::Text)];
        FormFrame { page: page.intro(V::VERB.hint), fields, submit, is_grave: V::VERB.is_grave }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let accounts = &sheet.desk.accounts;
        accounts.carry_out(&sheet.visitor.principal, request, V::VERB, sheet.id()?).await?;
        let page = match &self.subject {
            Subject::Wallet(it) => format!("/wallets/{}", it.wallet.id),
            Subject::ApiKey(it) => format!("/keys/{}", it.id),
            Subject::Webhook(it) => format!("/webhooks/{}", it.id),
        };
        Ok(FormOutcome::done().next(page))
    }
}
