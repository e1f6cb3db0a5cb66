//! Passwords: what one may be, and how they are hashed and checked.
//!
//! argon2id with 19 MiB, two passes and one lane. One is computed at a time in a process, ten wait,
//! and whoever comes then is told to come again: nobody fills memory and processors by signing in.
//! What is computed runs to its end, on a thread that may block, whether or not its caller waits.
//!
//! Never in here: a password in an error, or in a `Debug`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::rand;
use holdfast_domain::account::PasswordHash;
use holdfast_domain::ports::Cause;
use holdfast_domain::private::Private;
use tokio::sync::Semaphore;

/// Hashes that wait for the one that is computed.
const WAITING_MAX: usize = 10;
/// Memory of a hash, in KiB, and its passes and lanes.
const COSTS: (u32, u32, u32) = (19_456, 2, 1);
const SALT_LEN: usize = 16;

/// A password: 12 to 256 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Password(Private<String>);

/// A text that is no password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a password has 12 to 256 characters")]
pub struct BadPassword;

impl FromStr for Password {
    type Err = BadPassword;

    fn from_str(text: &str) -> Result<Self, BadPassword> {
        // Whatever people type: blanks and all letters of all scripts.
        if (12..=256).contains(&text.chars().count()) {
            Ok(Self(Private(text.to_owned())))
        } else {
            Err(BadPassword)
        }
    }
}

/// Failure to hash or to check a password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// As many as may wait are waiting.
    #[error("{WAITING_MAX} passwords wait to be checked already")]
    Busy,
    /// It could not be computed.
    #[error("a password cannot be hashed")]
    Failed(#[source] Cause),
}

/// The one place of a process where passwords are hashed.
pub(crate) struct PasswordHasher {
    running: Arc<Semaphore>,
    /// Places of the one that is computed and of those that wait.
    places: Arc<Semaphore>,
}

impl fmt::Debug for PasswordHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHasher")
    }
}

impl Default for PasswordHasher {
    fn default() -> Self {
        let places = WAITING_MAX.saturating_add(1);
        Self { running: Arc::new(Semaphore::new(1)), places: Arc::new(Semaphore::new(places)) }
    }
}

impl PasswordHasher {
    /// Hashes a password with a salt of its own.
    pub(crate) async fn hash(&self, password: &Password) -> Result<PasswordHash, HashError> {
        let password = password.clone();
        self.compute(move || hashed(&password)).await?
    }

    /// True where this is the password of the hash. Without one the same work is done, and it is not.
    pub(crate) async fn is_proven(
        &self,
        password: &Password,
        hash: Option<&PasswordHash>,
    ) -> Result<bool, HashError> {
        let (password, hash) = (password.clone(), hash.cloned());
        let verify = move || match hash {
            Some(hash) => {
                let proven = argon2()?.verify_password(password.0.as_bytes(), hash.expose());
                Ok(proven.is_ok())
            }
            None => hashed(&password).map(|_hash| false),
        };
        self.compute(verify).await?
    }

    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HashError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_full| HashError::Busy)?;
        let turn = Arc::clone(&self.running).acquire_owned().await;
        let turn = turn.map_err(|closed| HashError::Failed(Box::new(closed)))?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((turn, place));
            done
        });
        done.await.map_err(|error| HashError::Failed(Box::new(error)))
    }
}

fn argon2() -> Result<Argon2<'static>, HashError> {
    let (memory, passes, lanes) = COSTS;
    let costs = Params::new(memory, passes, lanes, None);
    let costs = costs.map_err(|error| HashError::Failed(error.to_string().into()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, costs))
}

fn hashed(password: &Password) -> Result<PasswordHash, HashError> {
    let mut salt = [0; SALT_LEN];
    rand::fill(&mut salt).map_err(|error| HashError::Failed(Box::new(error)))?;
    let hash = argon2()?.hash_password_with_salt(password.0.as_bytes(), &salt);
    let hash = hash.map_err(|error| HashError::Failed(error.to_string().into()))?;
    Ok(PasswordHash::new(hash.to_string()))
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    fn password(text: &str) -> Password {
        text.parse().unwrap()
    }

    #[test]
    fn a_password_has_12_to_256_characters_and_prints_nowhere() {
        for (text, is_one) in [("elevencharz", false), ("twelve chars", true)] {
            assert_eq!(text.parse::<Password>().is_ok(), is_one, "{text}");
        }
        assert!("ä".repeat(256).parse::<Password>().is_ok());
        assert!("ä".repeat(257).parse::<Password>().is_err());
        assert!(!format!("{:?}", password("twelve chars")).contains("twelve"));
    }

    #[tokio::test]
    async fn a_password_proves_its_own_hash_alone() {
        let hasher = PasswordHasher::default();
        let hash = hasher.hash(&password("correct horse")).await.unwrap();
        assert!(hash.expose().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "its costs");
        let check = async |text, hash| hasher.is_proven(&password(text), hash).await.unwrap();
        assert!(check("correct horse", Some(&hash)).await);
        assert!(!check("correct house", Some(&hash)).await);
        assert!(!check("correct horse", None).await);
        assert_ne!(hasher.hash(&password("correct horse")).await.unwrap(), hash, "a salt");
    }

    #[tokio::test]
    async fn one_is_computed_ten_wait_and_the_twelfth_is_told_to_come_again() {
        let hasher = Arc::new(PasswordHasher::default());
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let mut running = JoinSet::new();
        let own = Arc::clone(&hasher);
        running.spawn(async move { own.compute(move || gate.recv().is_ok()).await.is_ok() });
        for _waiting in 0..WAITING_MAX {
            let own = Arc::clone(&hasher);
            running.spawn(async move { own.compute(|| ()).await.is_ok() });
        }
        while hasher.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(hasher.compute(|| ()).await, Err(HashError::Busy)));
        go.send(()).unwrap();
        assert!(running.join_all().await.into_iter().all(|is_done| is_done));
        assert!(hasher.compute(|| ()).await.is_ok());
    }
}
