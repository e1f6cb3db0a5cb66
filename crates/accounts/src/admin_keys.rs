//! Admin keys: issued, rotated, revoked. An administrator grants only rights that they have, and no end beyond
//! their own.

use std::time::Duration;

use holdfast_domain::admin::listing::{AdminKeyState, Page, PageRequest};
use holdfast_domain::admin::{
    AccountAction, AdminBearer, AdminCredential, AdminKey, AdminKeyAction, Reach, ResourceId, Role,
    UseCase,
};
use holdfast_domain::{AdminKeyId, Timestamp};
use uuid::Uuid;

use crate::{Accounts, AccountsError, Name, Outcome, Principal, Request, ResourceKind, Result};

/// An admin key to be issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAdminKey {
    /// Name for people.
    pub name: Name,
    /// Role.
    pub role: Role,
    /// Wallets that the role is for: one for a holder's role, all for any other.
    pub reach: Reach,
    /// Moment from which it is not accepted.
    pub ends_at: Option<Timestamp>,
}

/// An admin key that was issued or rotated, with its bearer if this very request created it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedAdminKey {
    /// Id of the key.
    pub id: AdminKeyId,
    /// The key as it was issued; `None` for a repetition or a rotation.
    pub admin_key: Option<AdminKey>,
    /// Text that its holder shows; `None` for a repetition, which cannot know it.
    pub bearer: Option<AdminBearer>,
}

impl Accounts {
    /// Issues an admin key.
    pub async fn issue_admin_key(
        &self,
        principal: &Principal,
        request: &Request,
        new: &NewAdminKey,
    ) -> Result<Outcome<IssuedAdminKey>> {
        principal.authorize(UseCase::AdminKeyIssue)?;
        if !principal.role.may_grant(new.role) {
            return Err(AccountsError::Forbidden {
                use_case: UseCase::AdminKeyIssue,
                role: principal.role,
            });
        }
        let is_one_wallet = matches!(new.reach, Reach::Wallet(_));
        if new.role.is_holder() != is_one_wallet {
            return Err(AccountsError::Invalid {
                field: "wallet_id",
                message: "a holder's role is for one wallet, and any other role for none"
                    .to_owned(),
            });
        }
        refuse_beyond(principal, new.ends_at)?;
        if let Reach::Wallet(wallet) = new.reach {
            let found = self.book.wallet_record(wallet).await?;
            found.ok_or(AccountsError::NotFound(ResourceKind::Wallet))?;
        }
        let admin_key = AdminKey {
            id: AdminKeyId::from(Uuid::new_v4()),
            name: new.name.as_str().to_owned(),
            role: new.role,
            reach: new.reach,
            ends_at: new.ends_at,
            // The store's moment takes its place.
            created_at: Timestamp::from_micros(0),
            created_by: principal.actor,
            revoked_at: None,
        };
        let (credential, bearer) = self.admin_credential(admin_key.id)?;
        let action = AccountAction::AdminKey(AdminKeyAction::Issue(admin_key.clone(), credential));
        let done = self.change(principal, request, action).await?;
        let is_shown = !request.dry_run && !done.replayed;
        let thing = IssuedAdminKey {
            id: done.things.iter().find_map(admin_key_of).unwrap_or(admin_key.id),
            admin_key: Some(admin_key).filter(|_| is_shown),
            bearer: Some(bearer).filter(|_| is_shown),
        };
        Ok(Outcome { thing, replayed: done.replayed })
    }

    /// Adds a credential to an admin key, and ends its other ones after a grace.
    pub async fn rotate_admin_key(
        &self,
        principal: &Principal,
        request: &Request,
        id: AdminKeyId,
        grace: Duration,
    ) -> Result<Outcome<IssuedAdminKey>> {
        principal.authorize(UseCase::AdminKeyRotate)?;
        let (credential, bearer) = self.admin_credential(id)?;
        let action = AccountAction::AdminKey(AdminKeyAction::Rotate { credential, grace });
        let done = self.change(principal, request, action).await?;
        let bearer = Some(bearer).filter(|_| !request.dry_run && !done.replayed);
        let thing = IssuedAdminKey { id, admin_key: None, bearer };
        Ok(Outcome { thing, replayed: done.replayed })
    }

    /// Ends an admin key for good. The last owner's stays.
    pub async fn revoke_admin_key(
        &self,
        principal: &Principal,
        request: &Request,
        id: AdminKeyId,
    ) -> Result<Outcome<AdminKeyId>> {
        principal.authorize(UseCase::AdminKeyRevoke)?;
        let done = self
            .change(principal, request, AccountAction::AdminKey(AdminKeyAction::Revoke(id)))
            .await?;
        Ok(Outcome { thing: id, replayed: done.replayed })
    }

    /// Admin keys, in one state or in all, a page at a time.
    pub async fn admin_keys(
        &self,
        principal: &Principal,
        state: Option<AdminKeyState>,
        page: PageRequest,
    ) -> Result<Page<AdminKey>> {
        principal.authorize(UseCase::AdminKeyRead)?;
        Ok(self.book.admin_keys(state, page).await?)
    }

    /// The admin key of this id.
    pub async fn admin_key(&self, principal: &Principal, id: AdminKeyId) -> Result<AdminKey> {
        principal.authorize(UseCase::AdminKeyRead)?;
        let found = self.book.admin_key(id).await?;
        found.ok_or(AccountsError::NotFound(ResourceKind::AdminKey))
    }

    fn admin_credential(&self, admin_key: AdminKeyId) -> Result<(AdminCredential, AdminBearer)> {
        let server_secret = self.writing_secret()?;
        let (id, secret) = self.random_credential()?;
        let bearer = AdminBearer { id, secret };
        let credential = AdminCredential {
            id,
            admin_key,
            verifier: server_secret.admin_verifier(&bearer.secret),
            server_secret: server_secret.id(),
            ends_at: None,
        };
        Ok((credential, bearer))
    }
}

fn admin_key_of(thing: &ResourceId) -> Option<AdminKeyId> {
    if let ResourceId::AdminKey(id) = thing { Some(*id) } else { None }
}

/// Refuses an end beyond that of the grantor, which never moves. The command judges if it has passed.
fn refuse_beyond(principal: &Principal, ends_at: Option<Timestamp>) -> Result<()> {
    let is_beyond = principal.ends_at.is_some_and(|own| ends_at.is_none_or(|end| end > own));
    if !is_beyond {
        return Ok(());
    }
    let message = "no grant lasts longer than its grantor: set an end that is not later than yours";
    Err(AccountsError::Invalid { field: "ends_at", message: message.to_owned() })
}
