//! The form that makes another one-time link for a person.

use async_trait::async_trait;
use holdfast_accounts::Request;
use holdfast_domain::admin::{PersonRecord, UseCase};

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::pages::people::{address, below, person, told};

/// The form of one person.
#[derive(Debug)]
pub(crate) struct RenewLink {
    record: PersonRecord,
}

#[async_trait]
impl FormPage for RenewLink {
    const USE_CASE: UseCase = UseCase::PersonLink;

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { record: person(sheet).await? })
    }

    fn frame(&self) -> FormFrame {
        let intro = if self.record.has_password {
            "Their password and all their sessions end at once, and they set another password by the link."
        } else {
            "The link before is not valid any more."
        };
        FormFrame {
            page: below("Make a new link", &self.record).intro(intro),
            fields: Vec::new(),
            submit: "Make the link".to_owned(),
            is_grave: self.record.has_password,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        _fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let (accounts, id) = (&sheet.desk.accounts, self.record.person.id);
        let made = accounts.renew_link(&sheet.visitor.principal, request, id).await?.thing;
        Ok(match &made.link {
            Some(token) => {
                let (notice, link) = told(sheet, token, &self.record.roles());
                FormOutcome::done().section(notice).section(link).telling_once()
            }
            None => FormOutcome::done().next(address(id)),
        })
    }
}
