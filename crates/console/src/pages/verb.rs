//! The form of each verb of one shape (`holdfast_accounts::VERBS`): a reason, then the resource's page.

use holdfast_accounts::{Subject, Verb};

use crate::failure::Failure;
use crate::kit::form::{FormFrame, FormOutcome, FormPage, Submission};
use crate::kit::{FormField, Visit};
use crate::pages::parts::{api_key, wallet, webhook};

/// The form of a verb.
#[derive(Debug)]
pub(crate) struct VerbForm {
    verb: &'static Verb,
    subject: Subject,
}

impl FormPage for VerbForm {
    async fn open(visit: &Visit) -> Result<Self, Failure> {
        let verb = visit.verb.ok_or_else(Failure::not_found)?;
        let subject = visit.accounts().subject(visit.principal(), verb, visit.id()?).await?;
        Ok(Self { verb, subject })
    }

    fn frame(&self, form: FormFrame) -> FormFrame {
        let (form, noun) = match &self.subject {
            Subject::Wallet(it) => (wallet::framed(form, it), "wallet"),
            Subject::ApiKey(it) => (api_key::framed(form, it), "key"),
            Subject::Webhook(it) => (webhook::framed(form, it), "webhook"),
        };
        let reason = FormField { is_required: self.verb.needs_reason, ..FormField::reason() };
        let submit = format!("{} the {noun}", self.verb.title);
        FormFrame { submit, ..form.fields([reason]) }
    }

    async fn apply(&self, visit: &Visit, sent: &Submission) -> Result<FormOutcome, Failure> {
        let accounts = visit.accounts();
        accounts.carry_out(visit.principal(), &sent.request, self.verb, visit.id()?).await?;
        let page = format!("/{}/{}", self.verb.subject.nouns().pages, visit.id()?);
        Ok(FormOutcome::done().next(page))
    }
}
