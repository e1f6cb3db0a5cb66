//! `refusals`: the newest refused requests of each API key, a slot each.

use std::borrow::Cow;

use holdfast_domain::model::PublicModelId;
use holdfast_domain::statistics::{RefusedRequest, Shortage};
use holdfast_domain::{ApiKeyId, Micros, RequestId, Timestamp, WalletId};

/// Refused request with its slot.
#[derive(Debug, Clone)]
pub(crate) struct SlottedRefusal {
    pub(crate) slot: u32,
    pub(crate) request: RefusedRequest,
}

row! {
    "refusals" as "r", row: SlottedRefusal;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        request_id: RequestId = row.request.id,
        api_key_id: ApiKeyId = row.request.api_key,
        slot: u32 = row.slot,
        wallet_id: WalletId = row.request.wallet,
        refused_at: Timestamp = row.request.at,
        code: Cow<'static, str> = row.request.code,
        status: u16 = row.request.status,
        model: Option<PublicModelId> = row.request.model,
        wanted: Option<Micros> = row.request.shortage.map(|shortage| shortage.wanted),
        available: Option<Micros> = row.request.shortage.and_then(|shortage| shortage.available),
    }
    set {}
    SlottedRefusal {
        slot,
        request: RefusedRequest {
            id: request_id,
            at: refused_at,
            api_key: api_key_id,
            wallet: wallet_id,
            code,
            status,
            model,
            shortage: wanted.map(|wanted| Shortage { wanted, available }),
        },
    }
}
