//! The form that gives an API key another credential, and ends the others after a grace. Its secret is told once.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_accounts::{Reference, Request};
use holdfast_domain::admin::UseCase;
use holdfast_domain::credential::ApiKey;

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::key::told::told;
use crate::pages::key::{form_page, grant};

const GRACE: &str = "grace_seconds";
/// Spans for which the other credentials stay, in seconds.
const GRACES: [(u64, &str); 4] =
    [(0, "end at once"), (3_600, "stay an hour"), (86_400, "stay a day"), (604_800, "stay a week")];

/// The form of one API key.
#[derive(Debug)]
pub(crate) struct Rotate {
    key: ApiKey,
    offered: Vec<String>,
    is_own: bool,
}

#[async_trait]
impl FormPage for Rotate {
    const USE_CASE: UseCase = UseCase::ApiKeyRotate;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        let (desk, principal) = (&sheet.desk, &sheet.visitor.principal);
        let key =
            desk.accounts.api_key(principal, &Reference::Id(sheet.id()?), None).await?.api_key;
        let is_own = principal.role.is_holder();
        Ok(Self { key, offered: grant::offered(desk, principal), is_own })
    }

    fn frame(&self) -> FormFrame {
        let choices = GRACES.iter().map(|(span, label)| Choice::new(span.to_string(), *label));
        let grace = FieldKind::Select(choices.collect());
        let mut fields = vec![
            FormField::new(GRACE, "The other credentials", grace)
                .value("86400")
                .hint("Programs that still show one of them work as long as it stays."),
        ];
        if !self.is_own {
            let reason = FormField::new("reason", "Reason", FieldKind::Text);
            fields.push(reason.hint("The wallet's holder sees that the key was rotated."));
        }
        let page = form_page("Rotate", &self.key).intro(
            "The key gets another secret. Its limits, and what its requests are bound to, stay.",
        );
        FormFrame { page, fields, submit: "Rotate the key".to_owned(), is_grave: false }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let seconds: u64 = fields.want(GRACE)?;
        if !GRACES.iter().any(|(span, _)| *span == seconds) {
            return Err(Failure::field(GRACE, "Choose one of these."));
        }
        let id = Reference::Id(sheet.id()?);
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        let grace = Duration::from_secs(seconds);
        let rotated = accounts.rotate_api_key(principal, request, &id, grace).await?;
        Ok(told(&rotated.thing, &self.offered, &sheet.desk.options.base_url))
    }
}
