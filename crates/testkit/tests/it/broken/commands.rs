//! The commands, with what can be wrong about them.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::ports::CommandError;
use holdfast_domain::admin::{
    AccountAction, AccountReceipt, AccountRefusal, ApiKeyAction, ApiKeyPatch, NewPosting,
    ResourceId, WalletAction,
};
use holdfast_domain::credential::{Credential, NewApiKey};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::{ApiKeyId, Micros, OperationId, WalletId};
use holdfast_testkit::commands::CommandResult;
use holdfast_testkit::laws::Lists as _;
use holdfast_testkit::{Commands, sample};

use super::BrokenJournal;
use super::defect::Defect;

#[async_trait]
impl Commands for BrokenJournal {
    async fn administer(&self, action: AccountAction) -> CommandResult {
        if let AccountAction::ApiKey(ApiKeyAction::Issue { wallet, keys, .. }) = &action {
            return self.issued(*wallet, keys, action.clone()).await;
        }
        if let AccountAction::ApiKey(ApiKeyAction::Rotate { credential, wallet, grace, .. }) =
            &action
        {
            return self.rotated(credential, *wallet, *grace).await;
        }
        if let AccountAction::ApiKey(ApiKeyAction::Edit { api_key, patch, .. }) = &action {
            return self.edited(*api_key, patch, action.clone()).await;
        }
        if let AccountAction::Post(NewPosting { posting, .. }) = &action {
            return self.posted(posting, action.clone()).await;
        }
        let done = self.inner.administer(action.clone()).await;
        if let AccountAction::Wallet(WalletAction::Create(mut record)) = action
            && self.has(Defect::NamesOfWalletsRepeat)
            && matches!(done, Err(CommandError::Refused(AccountRefusal::NameTaken(_))))
        {
            record.wallet.name = format!("{}, {}", record.wallet.name, record.wallet.id);
            return self
                .inner
                .administer(AccountAction::Wallet(WalletAction::Create(record)))
                .await;
        }
        done
    }

    fn turn(&self, span: Duration) -> bool {
        self.inner.turn(span)
    }
}

impl BrokenJournal {
    async fn issued(
        &self,
        wallet: WalletId,
        keys: &[(NewApiKey, Credential)],
        action: AccountAction,
    ) -> CommandResult {
        if self.has(Defect::KeysMakeWallets) {
            self.make(wallet).await;
        }
        let listed = self.inner.all_api_keys().await;
        let (key, credential) = keys.first().unwrap();
        let seems_free = !listed.iter().any(|known| known.name == key.name);
        let issued = self.inner.administer(action).await;
        let is_given_again = self.has(Defect::NamesOfKeysRepeat)
            || (self.has(Defect::NamesOfKeysRace) && seems_free);
        let is_taken = matches!(issued, Err(CommandError::Refused(AccountRefusal::NameTaken(_))));
        if is_taken && is_given_again {
            let name = format!("{}, {}", key.name, key.id);
            return self.inner.issue(&NewApiKey { name, ..key.clone() }, credential).await;
        }
        issued
    }

    async fn rotated(
        &self,
        credential: &Credential,
        wallet: WalletId,
        grace: Duration,
    ) -> CommandResult {
        let old_ones = Duration::from_secs(1 << 40);
        let given = if self.has(Defect::OldCredentialsStay) { old_ones } else { grace };
        let rotated = self.inner.rotate(credential, wallet, given).await;
        match &rotated {
            Err(CommandError::Refused(AccountRefusal::ApiKeyEnded))
                if self.has(Defect::EndedKeysAreRotated) =>
            {
                self.done(ResourceId::ApiKey(credential.api_key))
            }
            Err(CommandError::Unavailable(_)) if self.has(Defect::RefusedRotationsEnd) => {
                let another = Credential { id: sample::fresh(), ..credential.clone() };
                self.inner.rotate(&another, wallet, grace).await.unwrap();
                rotated
            }
            Ok(_)
            | Err(
                CommandError::Refused(_)
                | CommandError::Unavailable(_)
                | CommandError::Uncertain(_),
            ) => rotated,
        }
    }

    async fn edited(
        &self,
        api_key: ApiKeyId,
        patch: &ApiKeyPatch,
        action: AccountAction,
    ) -> CommandResult {
        let done = self.inner.administer(action).await;
        let spend = patch.spend.flatten().filter(|_limit| self.has(Defect::SeedsGoByEndings));
        let Some(spend) = spend else { return done };
        let (counter, now) = (spend.window.counter(), self.inner.now());
        let mut used = 0;
        for row in self.inner.operations().into_iter().filter(|row| row.api_key == api_key) {
            let at = row.phase.finished_at().unwrap_or(row.admitted_at);
            let amount = match &row.phase {
                Phase::Leased | Phase::Recorded(_) => row.hold.get(),
                Phase::Completed { usage, .. } => usage.charge.get(),
                Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => 0,
            };
            used += if counter.window(at) == counter.window(now) { amount } else { 0 };
        }
        self.inner.set_counter(api_key, counter, used);
        done
    }

    async fn posted(&self, posting: &Posting, action: AccountAction) -> CommandResult {
        if self.has(Defect::DepositsMakeWallets) {
            self.make(posting.wallet).await;
        }
        match self.inner.administer(action).await {
            Err(error) => self.posted_anyway(posting, error).await,
            Ok(done) if done.replayed && self.has(Defect::PostingsRepeat) => {
                self.inner.post(&Posting { id: sample::fresh(), ..posting.clone() }).await
            }
            Ok(done) => Ok(done),
        }
    }

    fn done(&self, thing: ResourceId) -> CommandResult {
        Ok(AccountReceipt { things: vec![thing], at: self.inner.now(), replayed: false })
    }

    async fn posted_anyway(&self, posting: &Posting, error: CommandError) -> CommandResult {
        if !posting.kind.allows(posting.amount) {
            let is_taken = self.has(Defect::AnythingIsPosted);
            return if is_taken { self.done(ResourceId::Posting(posting.id)) } else { Err(error) };
        }
        let mut again = Posting { id: sample::fresh(), ..posting.clone() };
        match &posting.kind {
            PostingKind::Adjustment(_) if self.has(Defect::AdjustmentsTakeLess) => {
                let wallet = self.inner.wallet(posting.wallet);
                again.amount = wallet.map_or(Micros::ZERO, |wallet| wallet.available.negated());
                self.inner.post(&again).await
            }
            PostingKind::Deposit if self.has(Defect::HeldHasNoRoom) => {
                let wallet = self.inner.wallet(posting.wallet);
                let after = wallet.and_then(|wallet| wallet.available.plus(posting.amount));
                let fits = after.is_some_and(|after| after <= Micros::BALANCE_MAX);
                if fits { self.done(ResourceId::Posting(posting.id)) } else { Err(error) }
            }
            PostingKind::Refund(operation) if self.refunds(*operation, posting.amount) => {
                again.kind = PostingKind::Deposit;
                self.inner.post(&again).await
            }
            PostingKind::Deposit | PostingKind::Refund(_) | PostingKind::Adjustment(_) => {
                Err(error)
            }
        }
    }

    fn refunds(&self, operation: OperationId, amount: Micros) -> bool {
        let Some(Operation { phase, .. }) = self.inner.operation(operation) else { return false };
        let fits = phase.usage().is_some_and(|usage| amount <= usage.charge);
        let is_early = matches!(phase, Phase::Recorded(_));
        let defect = if is_early { Defect::RefundsComeEarly } else { Defect::RefundsAreNotSummed };
        fits && self.has(defect)
    }
}
