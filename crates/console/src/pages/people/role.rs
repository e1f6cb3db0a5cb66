//! The form that ends one role of a person, or the offer of it.

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::admin::{Authority, PersonRecord, UseCase};

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::people::{below, person};

/// The form of one person.
#[derive(Debug)]
pub(crate) struct EndRole {
    record: PersonRecord,
}

impl EndRole {
    fn roles(&self) -> impl Iterator<Item = Authority> {
        self.record.grants.iter().map(|grant| grant.authority).chain(self.record.offered())
    }
}

#[async_trait]
impl FormPage for EndRole {
    const USE_CASE: UseCase = UseCase::PersonEnd;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { record: person(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let choice = |role: Authority| Choice::new(role.to_string(), role.to_string());
        let intro = "The sessions that use the role end at once, and an open invitation to it.";
        FormFrame {
            page: below("End a role", &self.record).intro(intro),
            fields: vec![
                FormField::new(
                    "role",
                    "Role",
                    FieldKind::Select(self.roles().map(choice).collect()),
                ),
                FormField::optional("reason", "Reason", FieldKind::Text),
            ],
            submit: "End the role".to_owned(),
            is_grave: true,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let chosen = fields.raw("role");
        let role = self.roles().find(|role| role.to_string() == chosen);
        let role = role.ok_or_else(|| Failure::field("role", "Choose a role."))?;
        let (accounts, id) = (&sheet.desk.accounts, self.record.person.id);
        accounts.end_grant(&sheet.visitor.principal, request, id, role).await?;
        // A holder's administrator may see nobody there any more.
        Ok(FormOutcome::done().next("/people"))
    }
}
