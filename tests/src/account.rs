//! An account to send requests with. A site creates it; a client of a gateway bears its credential.

/// A wallet and an API key that spends from it.
#[derive(Debug, Clone)]
pub struct Account {
    /// The wallet's id.
    pub wallet: String,
    /// The API key's id.
    pub id: String,
    /// The whole credential.
    pub key: String,
}
