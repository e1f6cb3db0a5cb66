//! The form of each verb of one shape (`holdfast_accounts::VERBS`): a reason, then the resource's page.

use async_trait::async_trait;
use holdfast_accounts::{Subject, Verb};

use crate::failure::Failure;
use crate::kit::field::FormField;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::visit::Visit;
use crate::pages::parts::{api_key, wallet, webhook};

/// The form of a verb.
#[derive(Debug)]
pub(crate) struct VerbForm {
    verb: &'static Verb,
    subject: Subject,
}

#[async_trait]
impl FormPage for VerbForm {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let verb = visit.verb.ok_or_else(Failure::not_found)?;
        let subject = visit.accounts().subject(visit.principal(), verb, visit.id()?).await?;
        Ok(Self { verb, subject })
    }

    fn frame(&self) -> FormFrame {
        let title = self.verb.title;
        let (page, submit) = match &self.subject {
            Subject::Wallet(it) => (wallet::form_page(title, it), format!("{title} the wallet")),
            Subject::ApiKey(it) => (api_key::form_page(title, it), format!("{title} the key")),
            Subject::Webhook(it) => {
                let title = format!("{title} the webhook");
                (webhook::form_page(&title, it), title)
            }
        };
        let reason = FormField { is_required: self.verb.needs_reason, ..FormField::reason() };
        let frame = FormFrame::new(page.intro(self.verb.hint), vec![reason], submit);
        FormFrame { is_grave: self.verb.is_grave, ..frame }
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let accounts = visit.accounts();
        accounts.carry_out(visit.principal(), &sent.request, self.verb, visit.id()?).await?;
        let page = format!("/{}/{}", self.verb.subject.nouns().pages, visit.id()?);
        Ok(FormOutcome::done().next(page))
    }
}
