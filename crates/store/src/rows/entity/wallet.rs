//! `wallets`: who pays.

use holdfast_domain::admin::WalletRecord;
use holdfast_domain::limits::SpendWindow;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{Currency, Micros, Timestamp, WalletId};

use crate::rows::spend_limit;

row! {
    "wallets" as "w", record: WalletRecord;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        id: WalletId = record.wallet.id,
        currency: Currency = record.wallet.currency,
        available: Micros = record.wallet.available,
        held: Micros = record.wallet.held,
        created_at: Timestamp = record.created_at,
    }
    set {
        name: String = record.wallet.name,
        external_id: Option<String> = record.external_id,
        low_balance: Option<Micros> = record.low_balance,
        key_spend: Option<Micros> = record.key_spend.map(|limit| limit.micros),
        key_spend_window: Option<SpendWindow> = record.key_spend.map(|limit| limit.window),
        edited: u32 = record.edited,
        suspended_at: Option<Timestamp> = record.wallet.suspended_at,
        closed_at: Option<Timestamp> = record.closed_at,
    }
    WalletRecord {
        wallet: Wallet { id, name, currency, available, held, suspended_at },
        external_id,
        low_balance,
        key_spend: spend_limit(key_spend, key_spend_window),
        edited,
        created_at,
        closed_at,
    }
}
