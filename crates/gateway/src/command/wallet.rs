//! `holdfast wallet`

mod posting;
mod statement;

use anyhow::{Context, anyhow};
use holdfast_accounts::{AccountsError, NewWallet, Outcome, Reference, Request};
use holdfast_config::Config;
use holdfast_domain::Currency;
use holdfast_domain::account::{WalletPatch, WalletRecord};
use holdfast_domain::listing::{Order, WalletFilter};
use holdfast_store::Store;
use holdfast_wire::api::{WalletView, rfc3339};

use super::pages::{self, ALL};
use crate::accounts::{LocalAccounts, Undone, request};
use crate::cli;
use crate::failure::CommandFailure;
use crate::output::{Output, note};

pub(super) async fn run(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::Wallet,
) -> Result<(), CommandFailure> {
    use cli::Wallet as Command;
    match command {
        Command::Create { name, currency, external_id, key } => {
            let mut words = vec!["wallet create", name.as_str()];
            words.extend(external_id.as_ref().map(holdfast_accounts::ExternalId::as_str));
            let (code, local) =
                (currency.to_string(), LocalAccounts::to_change(config, store).await?);
            words.push(&code);
            let asked = request(key.uuid, &words, None);
            let new = NewWallet { name, currency, external_id, low_balance: None, key_spend: None };
            let made = local.accounts.create_wallet(&local.principal, &asked, &new).await;
            shown(output, "no wallet was made", &asked, made)?;
            warn_of_prices(config, currency);
            Ok(())
        }
        Command::Change(command) => change(output, config, store, command).await,
        Command::Post(command) => posting::post(output, config, store, command).await,
        Command::Posting { id } => posting::show(output, store, id).await,
        Command::Show { wallet } => show(output, &find(store, &wallet).await?),
        Command::List => list(output, store).await,
        Command::Ledger { wallet, period, limit, csv } => {
            let form = statement::StatementFormat::of(output, csv)?;
            statement::run(form, store, &wallet, period.period()?, limit).await
        }
    }
}

/// Changes of one wallet.
async fn change(
    output: Output,
    config: &Config,
    store: &Store,
    command: cli::WalletChange,
) -> Result<(), CommandFailure> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_change(config, store).await?;
    let words = format!("{command:?}");
    let words = ["wallet", &words];
    match command {
        cli::WalletChange::Suspend { wallet, reason, key } => {
            let asked = request(key.uuid, &words, Some(&reason));
            let done = accounts.suspend_wallet(&principal, &asked, &wallet).await;
            shown(output, "the wallet was not suspended", &asked, done)?;
            note("a running `holdfast serve` lets nothing new run on it within 5 seconds");
            Ok(())
        }
        cli::WalletChange::Resume { wallet, key } => {
            let asked = request(key.uuid, &words, None);
            let done = accounts.resume_wallet(&principal, &asked, &wallet).await;
            shown(output, "the wallet was not resumed", &asked, done)
        }
        cli::WalletChange::Close { wallet, dry_run, key } => {
            let asked = Request { dry_run, ..request(key.uuid, &words, None) };
            let done = accounts.close_wallet(&principal, &asked, &wallet).await;
            shown(output, "the wallet was not closed", &asked, done)?;
            if dry_run {
                note("nothing was changed: without --dry-run it is closed for good");
            }
            Ok(())
        }
        cli::WalletChange::Update {
            wallet,
            name,
            external_id,
            no_external_id,
            key_spend,
            no_key_spend,
            key,
        } => {
            let external_id = external_id.map(|id| Some(id.as_str().to_owned()));
            let patch = WalletPatch {
                name: name.map(|name| name.as_str().to_owned()),
                external_id: external_id.or(no_external_id.then_some(None)),
                low_balance: None,
                key_spend: key_spend
                    .map(|spend| Some(spend.limit()))
                    .or(no_key_spend.then_some(None)),
            };
            let asked = request(key.uuid, &words, None);
            let done = accounts.edit_wallet(&principal, &asked, &wallet, patch, None).await;
            shown(output, "the wallet was not changed", &asked, done)
        }
    }
}

/// Shows a wallet after a change, or says why there was none.
fn shown(
    output: Output,
    nothing: &str,
    asked: &Request,
    done: Result<Outcome<WalletRecord>, AccountsError>,
) -> Result<(), CommandFailure> {
    let undone = Undone { nothing, key: asked.key, currency: None };
    let Outcome { thing, replayed } = done.map_err(|error| undone.because(error))?;
    show(output, &thing)?;
    if replayed {
        note("this had been done before: nothing was changed");
    }
    Ok(())
}

fn warn_of_prices(config: &Config, currency: Currency) {
    let mut prices = config.models.iter().flat_map(|model| &model.prices);
    if !prices.any(|price| price.version.currency == currency) {
        note(&format!(
            "no model has a price in {currency}: this wallet can pay for none until one has"
        ));
    }
}

async fn list(output: Output, store: &Store) -> Result<(), CommandFailure> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_read(store);
    let (mut views, mut rows) = (Vec::new(), Vec::new());
    let add = |record: WalletRecord| {
        views.push(WalletView::for_operator(&record));
        rows.push([
            record.wallet.id.to_string(),
            record.wallet.name.clone(),
            record.wallet.currency.to_string(),
            record.wallet.available.to_string(),
            record.wallet.held.to_string(),
            state(&record).to_owned(),
        ]);
    };
    let page = |request| accounts.wallets(&principal, WalletFilter::default(), request);
    let read = pages::read(Order::Oldest, ALL, page, add).await;
    read.context("wallets were not listed")?;
    output.list(&views, ["id", "name", "currency", "available", "held", "state"], &rows)
}

/// The wallet of this id or name.
pub(super) async fn find(store: &Store, reference: &Reference) -> anyhow::Result<WalletRecord> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_read(store);
    match accounts.wallet(&principal, reference).await {
        Ok(found) => Ok(found),
        Err(AccountsError::NotFound(_)) => {
            Err(anyhow!("there is no wallet {reference}: `holdfast wallet list` shows all"))
        }
        Err(error) => Err(anyhow::Error::from(error).context("the wallet was not looked up")),
    }
}

fn show(output: Output, record: &WalletRecord) -> Result<(), CommandFailure> {
    let WalletRecord { wallet, external_id, key_spend, .. } = record;
    let mut fields = vec![
        ("id", wallet.id.to_string()),
        ("name", wallet.name.clone()),
        ("currency", wallet.currency.to_string()),
        ("available", wallet.available.to_string()),
        ("held", wallet.held.to_string()),
        ("state", state(record).to_owned()),
    ];
    fields.extend(external_id.clone().map(|id| ("external_id", id)));
    let spend = |limit: &holdfast_domain::limits::SpendLimit| {
        format!("{}/{}", limit.micros, limit.window.label())
    };
    fields.extend(key_spend.as_ref().map(|limit| ("key_spend", spend(limit))));
    fields.extend(wallet.suspended_at.map(|at| ("suspended_at", rfc3339(at))));
    fields.extend(record.closed_at.map(|at| ("closed_at", rfc3339(at))));
    output.object(&WalletView::for_operator(record), &fields)
}

const fn state(record: &WalletRecord) -> &'static str {
    match (record.closed_at, record.wallet.suspended_at) {
        (Some(_), _) => "closed",
        (None, Some(_)) => "suspended",
        (None, None) => "active",
    }
}
