//! Statements that end an operation, or request that its owner ends it. Each is guarded by the version that the
//! change was judged by, by the claim and by the phase: a change that lost a race moves no row.

pub(super) const END_METERED: &str =
    "UPDATE operations SET phase = ?3, version = version + 1, attempts = ?4,
    input = ?5, cached_input = ?6, cache_write = ?7, audio_input = ?8, output = ?9,
    reasoning = ?10, audio_output = ?11, request = ?12, image = ?13, meters_source = ?14,
    charge = ?15, shortfall = ?16, finished_at = ?17, provider_cost = ?18, usage_reasons = ?20
    WHERE seq = ?1 AND claim = ?19 AND version = ?2 AND phase = 'leased'";
pub(super) const END_UNMETERED: &str = "UPDATE operations SET phase = ?3, version = version + 1,
    attempts = ?4, refusal = ?5, finished_at = ?6
    WHERE seq = ?1 AND claim = ?7 AND version = ?2 AND phase = 'leased'";
pub(super) const SETTLE: &str = "UPDATE operations SET phase = 'completed', version = version + 1,
    finished_at = ?3 WHERE seq = ?1 AND claim = ?4 AND version = ?2 AND phase = 'recorded'";
pub(super) const ASK_CANCEL: &str = "UPDATE operations SET cancel_asked = 1, version = version + 1
    WHERE seq = ?1 AND claim = ?3 AND version = ?2 AND phase = 'leased'";
/// 128 is [`Reservation::CANCELLED_OPEN`](holdfast_domain::limits::Reservation::CANCELLED_OPEN).
pub(super) const CANCEL: &str = "UPDATE operations SET phase = 'abandoned', version = version + 1,
    finished_at = ?3, reserved_counters = reserved_counters | 128
    WHERE seq = ?1 AND claim = ?4 AND version = ?2 AND phase = 'open'";
/// The sealed result of an ending, by the number of a row that was just written.
pub(super) const RESULT: &str = "INSERT INTO results (op_seq, credential_id, format, nonce, sealed,
    finished_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
/// The moment of a recorded result's settlement.
pub(super) const SETTLE_RESULT: &str = "UPDATE results SET finished_at = ?2 WHERE op_seq = ?1";
