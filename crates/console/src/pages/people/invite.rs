//! The form that invites somebody to one role.

use async_trait::async_trait;
use holdfast_accounts::{Name, NewInvitation, Request};
use holdfast_domain::admin::{Authority, EmailAddress, Reach, Role, UseCase};

use crate::ask::SentFields;
use crate::failure::Failure;
use crate::field::{Choice, FieldKind, FormField};
use crate::form::{FormFrame, FormOutcome, FormPage, Sheet};
use crate::page::Page;
use crate::pages::people::{address, told};
use crate::pages::reference::{self, WALLET};

/// The form, for whoever invites.
#[derive(Debug)]
pub(crate) struct Invite {
    grantor: Authority,
}

impl Invite {
    /// Roles that may be given.
    fn roles(&self) -> impl Iterator<Item = Role> {
        let role = self.grantor.role;
        Role::ALL.into_iter().filter(move |other| role.may_grant(*other))
    }
}

#[async_trait]
impl FormPage for Invite {
    const USE_CASE: UseCase = UseCase::PersonInvite;
    const PRIVATE: &'static [&'static str] = &["email", "name"];

    async fn open(sheet: &Sheet) -> Result<Self, Failure> {
        Ok(Self { grantor: sheet.visitor.principal.authority() })
    }

    fn frame(&self) -> FormFrame {
        let roles = self.roles().map(|role| Choice::new(role.label(), role.label())).collect();
        let mut fields = vec![
            FormField::new("email", "E-mail address", FieldKind::Email),
            FormField::optional("name", "Name", FieldKind::Text),
            FormField::new("role", "Role", FieldKind::Select(roles)),
        ];
        if self.grantor.reach == Reach::All {
            let hint = "Name or id, for the roles of a holder alone.";
            fields.push(FormField::optional(WALLET, "Wallet", FieldKind::Text).hint(hint));
        }
        FormFrame {
            page: Page::new("Invite somebody").below("People", "/people").intro(
                "Nothing is sent: you get a link, and hand it over. Who is there already signs in and accepts \
                 the role.",
            ),
            fields,
            submit: "Invite".to_owned(),
            is_grave: false,
        }
    }

    async fn apply(
        &self,
        sheet: &Sheet,
        fields: &SentFields,
        request: &Request,
    ) -> Result<FormOutcome, Failure> {
        let email: EmailAddress = fields.want("email")?;
        let name: Option<Name> = fields.read("name")?;
        let role = fields.get("role").and_then(Role::from_label);
        let role = role.ok_or_else(|| Failure::field("role", "Choose a role."))?;
        let (accounts, principal) = (&sheet.desk.accounts, &sheet.visitor.principal);
        let reach = match principal.reach {
            own @ Reach::Wallet(_) => own,
            Reach::All => reach_of(sheet, fields, role).await?,
        };
        let new = NewInvitation { email, name, role, reach };
        let made = accounts.invite_person(principal, request, &new).await?.thing;
        Ok(match &made.link {
            Some(token) => {
                let (notice, link) = told(sheet, token, &[role]);
                FormOutcome::done().section(notice).section(link).telling_once()
            }
            None => FormOutcome::done().next(address(made.person)),
        })
    }
}

/// The reach of a role that is given by somebody who has all wallets.
async fn reach_of(sheet: &Sheet, fields: &SentFields, role: Role) -> Result<Reach, Failure> {
    match reference::wallet(&sheet.desk, &sheet.visitor, fields).await? {
        None if role.is_holder() => {
            Err(Failure::field(WALLET, "Name the wallet that the role is for."))
        }
        Some(_) if !role.is_holder() => {
            Err(Failure::field(WALLET, "Only a holder's role is for a wallet."))
        }
        None => Ok(Reach::All),
        Some(wallet) => Ok(Reach::Wallet(wallet)),
    }
}
