//! Options of a sender: its time, its resolver, and whom its TLS trusts.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::resolve::{Resolver, SystemResolver};

/// Options of a [`Sender`](crate::Sender).
#[derive(Debug, Clone)]
pub struct SenderOptions {
    /// Time limit of one try: from the look-up of the name to the end of the answer.
    pub try_time_max: Duration,
    /// Root certificates to trust besides the platform's and Mozilla's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Source of the addresses of names.
    pub resolver: Arc<dyn Resolver>,
}

impl SenderOptions {
    /// Time limit of one attempt, unless a test sets another.
    pub const TRY_TIME_MAX: Duration = Duration::from_secs(15);
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            try_time_max: Self::TRY_TIME_MAX,
            extra_roots: Vec::new(),
            resolver: Arc::new(SystemResolver),
        }
    }
}
