//! Fields of what an API key may do: limits, models, end, and what it sees. The forms that issue and edit share them.

use std::collections::BTreeSet;

use holdfast_accounts::Principal;
use holdfast_accounts::fields::members;
use holdfast_domain::admin::{Role, WalletRecord};
use holdfast_domain::credential::{BalanceVisibility, Grant, MODELS_MAX, UsageScope};
use holdfast_domain::limits::{CountLimit, Limits};
use holdfast_domain::model::{ModelPattern, PublicModelId};

use crate::failure::{Failure, FieldRefusal};
use crate::kit::value::{count, moment, moment_text, spend, spend_text, windows};
use crate::kit::{Choice, FieldKind, FormField, SentFields, Visit};

const SPEND: [&str; 2] = ["spend", "spend_window"];
const MODELS: &str = "models";
const ENDS_AT: &str = "ends_at";

texts! { #[template(path = "pages/grant.txt")] GrantText {
    NoBound = "no_bound",
    ModelIds = "model_ids",
    LongList { most: usize } = "long_list",
} }

/// Public ids of the models on offer.
pub(crate) fn offered(visit: &Visit) -> Vec<String> {
    // Who may not read them writes ids.
    let models = visit.accounts().models(visit.principal()).map(|offered| offered.models);
    let models = models.unwrap_or_default().into_iter();
    models.map(|offer| offer.contract.model.to_string()).collect()
}

/// Bound of what this principal grants on a wallet, in words; `None` without a bound.
pub(crate) fn bound(principal: &Principal, record: &WalletRecord) -> Option<String> {
    if matches!(principal.role, Role::Owner | Role::HolderAdmin) {
        return None;
    }
    let currency = record.wallet.currency;
    Some(record.key_spend.map_or_else(
        || GrantText::NoBound.to_string(),
        |most| format!("At most {}.", spend_text(most, currency)),
    ))
}

/// The fields with what a grant has.
pub(crate) fn fields(grant: &Grant, offered: &[String], bound: Option<String>) -> Vec<FormField> {
    let limits = &grant.limits;
    let amount = limits.spend.map(|spend| spend.micros.to_string());
    let spend = FormField::of(&members::KEY_SPEND, FieldKind::Amount);
    let spend = spend.value(amount.unwrap_or_default());
    let number = |limit: CountLimit| {
        let (row, bound) = (limit.row(), limits.count(limit).map(|bound| bound.to_string()));
        FormField::optional(row.member, row.title, FieldKind::Number)
            .value(bound.unwrap_or_default())
    };
    let choice = |value: &str, label: &str| Choice::new(value, label);
    let usage = vec![
        choice(UsageScope::Key.label(), "its own"),
        choice(UsageScope::Wallet.label(), "the whole wallet's"),
    ];
    let balance = vec![
        choice(BalanceVisibility::Shown.label(), "shown to it"),
        choice(BalanceVisibility::Hidden.label(), "hidden from it"),
    ];
    let mut fields = vec![
        match bound {
            Some(bound) => spend.hint(bound),
            None => spend,
        },
        FormField::of(&members::KEY_SPEND_WINDOW, windows())
            .value(limits.spend.map_or("month", |spend| spend.window.label())),
    ];
    fields.extend(CountLimit::ALL.map(number));
    fields.extend([
        models(grant, offered),
        FormField::of(&members::KEY_ENDS_AT, FieldKind::Moment).value(moment_text(grant.ends_at)),
        FormField::of(&members::KEY_USAGE, FieldKind::Select(usage)).value(grant.usage.label()),
        FormField::of(&members::KEY_BALANCE, FieldKind::Select(balance))
            .value(grant.balance.label()),
    ]);
    fields
}

/// Models and publishers to choose from, also granted entries that are not on offer; lines to write if there are none.
fn models(grant: &Grant, offered: &[String]) -> FormField {
    if is_long(grant) {
        // From before the bound: shown as a list of boxes it would be larger than a page may be.
        let hint = GrantText::LongList { most: MODELS_MAX }.to_string();
        return FormField::of(&members::KEY_MODELS, FieldKind::Area).hint(hint);
    }
    let granted = grant.models.iter().flatten().map(|entry| entry.as_str().to_owned());
    let granted: BTreeSet<_> = granted.collect();
    let models = offered.iter().filter_map(|id| PublicModelId::try_from(id.as_str()).ok());
    let publishers = models.map(|model| ModelPattern::of_publisher(&model).to_string());
    let known: BTreeSet<_> = granted.iter().chain(offered).cloned().chain(publishers).collect();
    let kind = if known.is_empty() {
        FieldKind::Area
    } else {
        let choices = known.iter().map(|entry| match entry.strip_suffix("/*") {
            Some(publisher) => Choice::new(entry, format!("all of {publisher}")),
            None => Choice::new(entry, entry),
        });
        FieldKind::Checks(choices.collect())
    };
    let value = granted.into_iter().collect::<Vec<_>>().join("\n");
    let field = FormField::of(&members::KEY_MODELS, kind).value(value);
    if known.is_empty() { field.hint(GrantText::ModelIds.to_string()) } else { field }
}

/// True for an allow-list from before there was a bound.
fn is_long(grant: &Grant) -> bool {
    grant.models.as_ref().is_some_and(|models| models.len() > MODELS_MAX)
}

/// The models of an edit of a key with this grant; `None` if its list stays.
#[expect(clippy::option_option, reason = "an edit tells a list that stays from none")]
pub(crate) fn edited_models(
    edited: Option<BTreeSet<ModelPattern>>,
    grant: &Grant,
) -> Option<Option<BTreeSet<ModelPattern>>> {
    // A list that is too long to be shown comes back empty. Taken as a choice, that would open
    // the key to every model.
    let stays = edited == grant.models || (edited.is_none() && is_long(grant));
    (!stays).then_some(edited)
}

/// Reads the fields.
pub(crate) fn read(fields: &SentFields) -> Result<Grant, Failure> {
    let counted = |limits: Limits, limit: CountLimit| {
        Ok::<_, Failure>(limits.with_count(limit, count(fields, limit.row().member)?))
    };
    let limits = CountLimit::ALL.into_iter().try_fold(Limits::default(), counted)?;
    let limits = Limits { spend: spend(fields, SPEND)?, ..limits };
    let usage = |label: &str| UsageScope::ALL.into_iter().find(|it| it.label() == label);
    let balance = |label: &str| BalanceVisibility::ALL.into_iter().find(|it| it.label() == label);
    Ok(Grant {
        limits,
        models: read_models(fields)?,
        balance: fields.require_choice("balance", balance)?,
        usage: fields.require_choice("usage", usage)?,
        ends_at: moment(fields, ENDS_AT)?,
    })
}

/// True if the end differs from that of a form opened on `grant`.
pub(crate) fn moves_end(fields: &SentFields, grant: &Grant) -> bool {
    fields.get(ENDS_AT).unwrap_or_default() != moment_text(grant.ends_at)
}

fn read_models(fields: &SentFields) -> Result<Option<BTreeSet<ModelPattern>>, Failure> {
    let texts = fields.all(MODELS).flat_map(str::split_whitespace);
    let read = |text: &str| {
        let bad = || Failure::field(MODELS, FieldRefusal::NotAPattern(text.to_owned()));
        ModelPattern::try_from(text).map_err(|_bad| bad())
    };
    let models: BTreeSet<_> = texts.map(read).collect::<Result<_, _>>()?;
    Ok(Some(models).filter(|models| !models.is_empty()))
}
