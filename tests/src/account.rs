//! An account to send requests with. A site makes it; whoever speaks to a gateway bears its credential.

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
