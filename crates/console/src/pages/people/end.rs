//! The form that ends a person for good.

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::admin::{PersonRecord, UseCase};

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::people::{address, below, person};

/// The form of one person.
#[derive(Debug)]
pub(crate) struct EndPerson {
    record: PersonRecord,
}

#[async_trait]
impl FormPage for EndPerson {
    const USE_CASE: UseCase = UseCase::PersonEnd;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { record: person(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let erase = Choice::new("yes", "Erase their e-mail address and name too");
        let intro = "All their roles and sessions end at once. This cannot be taken back.";
        FormFrame {
            page: below("End a person", &self.record).intro(intro),
            fields: vec![
                FormField::optional("erase", "Personal data", FieldKind::Checks(vec![erase])),
                FormField::optional("reason", "Reason", FieldKind::Text),
            ],
            submit: "End".to_owned(),
            is_grave: true,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (&sheet.desk.accounts, self.record.person.id);
        let is_erased = fields.get("erase").is_some();
        accounts.end_person(&sheet.visitor.principal, request, id, is_erased).await?;
        Ok(FormOutcome::done().next(address(id)))
    }
}
