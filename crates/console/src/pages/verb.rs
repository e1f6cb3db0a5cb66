//! The form of each verb of one shape (`holdfast_accounts::VERBS`): a reason, then the resource's page.

use std::fmt::Debug;
use std::marker::PhantomData;

use async_trait::async_trait;
use holdfast_accounts::{Subject, Verb, verbs};
use holdfast_domain::admin::UseCase;

use crate::failure::Failure;
use crate::kit::field::FormField;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::visit::Visit;
use crate::pages::parts::{api_key, wallet, webhook};

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

    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let accounts = visit.accounts();
        let subject = accounts.subject(visit.principal(), V::VERB, visit.id()?).await?;
        Ok(Self { subject, verb: PhantomData })
    }

    fn frame(&self) -> FormFrame {
        let title = V::VERB.title;
        let (page, submit) = match &self.subject {
            Subject::Wallet(it) => (wallet::form_page(title, it), format!("{title} the wallet")),
            Subject::ApiKey(it) => (api_key::form_page(title, it), format!("{title} the key")),
            Subject::Webhook(it) => {
                let title = format!("{title} the webhook");
                (webhook::form_page(&title, it), title)
            }
        };
        let reason = FormField { is_required: V::VERB.needs_reason, ..FormField::reason() };
        let frame = FormFrame::new(page.intro(V::VERB.hint), vec![reason], submit);
        FormFrame { is_grave: V::VERB.is_grave, ..frame }
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let accounts = visit.accounts();
        accounts.carry_out(visit.principal(), &sent.request, V::VERB, visit.id()?).await?;
        let page = match &self.subject {
            Subject::Wallet(it) => format!("/wallets/{}", it.wallet.id),
            Subject::ApiKey(it) => format!("/keys/{}", it.id),
            Subject::Webhook(it) => format!("/webhooks/{}", it.id),
        };
        Ok(FormOutcome::done().next(page))
    }
}
