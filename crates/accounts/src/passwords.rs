//! Passwords: their form, and the computation of their hashes.
//!
//! argon2id with 19 MiB, two passes and one lane. A process computes one hash at a time, so that sign-ins fill neither
//! memory nor processors. Requests that wait are drawn by lot: first among the classes (known browsers, and each
//! listener), then among the clients of the class, then among the requests of the client. So the share of a client
//! does not grow with its requests, and no flood at one listener takes the turns of another one or of known browsers.
//!
//! Each class has room for [`WAITING_MAX`] requests. If it is full, one of the client with the most requests is
//! refused, the new one or an older one, by lot.
//!
//! A computation runs to its end, on a thread that may block, whether or not its caller waits.
//!
//! Never in here: a password in an error, or in a `Debug`.

mod turns;

use std::str::FromStr;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::rand;
use holdfast_domain::admin::PasswordHash;
use holdfast_domain::debug_as;
use holdfast_domain::ports::Cause;
use holdfast_domain::private::Private;

use self::turns::Turns;
pub(crate) use self::turns::{Lane, WAITING_MAX};

// Part of every stored hash, which is verified by its own costs: other values here are for new
// hashes only. `is_proven` without a hash computes with these. Changed, they make unknown addresses
// differ in time from people with older hashes.
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
        // All that people type: blanks and all letters of all scripts.
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
    /// The room is full, and the lot fell on this request.
    #[error("{WAITING_MAX} passwords wait to be checked already")]
    Busy,
    /// The computation failed.
    #[error("a password cannot be hashed")]
    Failed(#[source] Cause),
}

/// Hasher of passwords, the only one of a process.
#[derive(Default)]
pub(crate) struct PasswordHasher {
    turns: Turns,
}

debug_as!(PasswordHasher: "PasswordHasher");

impl PasswordHasher {
    /// Hashes a password with a salt of its own.
    pub(crate) async fn hash(
        &self,
        lane: Lane,
        password: &Password,
    ) -> Result<PasswordHash, HashError> {
        let password = password.clone();
        self.compute(lane, move || hashed(&password)).await?
    }

    /// True if the hash is of this password. Without a hash the work is the same, and the result false.
    pub(crate) async fn is_proven(
        &self,
        lane: Lane,
        password: &Password,
        hash: Option<&PasswordHash>,
    ) -> Result<bool, HashError> {
        let (password, hash) = (password.clone(), hash.cloned());
        let verify = move || match hash {
            // A hash that cannot be read and a wrong password are one answer here: the person sets
            // another one.
            Some(hash) => {
                let proven = argon2()?.verify_password(password.0.as_bytes(), hash.expose());
                Ok(proven.is_ok())
            }
            // Without a person the same work is done, or the time would show which addresses have
            // one.
            None => hashed(&password).map(|_hash| false),
        };
        self.compute(lane, verify).await?
    }

    async fn compute<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HashError> {
        let turn = self.turns.take(lane).await.ok_or(HashError::Busy)?;
        // A hash keeps a processor busy, so it runs on a blocking thread. The turn goes along: a caller that is dropped
        // does not stop the hash, and the next one must wait for its end.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        // A panic of the computation is a failure, never a verdict: the attempt is taken back.
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
    use std::net::IpAddr;
    use std::sync::Arc;

    use tokio::task::JoinSet;

    use super::*;
    use crate::origin::Listener;

    fn password(text: &str) -> Password {
        text.parse().unwrap()
    }

    fn stranger(listener: Listener) -> Lane {
        Lane::of_stranger(listener, IpAddr::from([192, 0, 2, 1]))
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
        let lane = stranger(Listener::Operators);
        let hash = hasher.hash(lane, &password("correct horse")).await.unwrap();
        assert!(hash.expose().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "its costs");
        let check = async |text, hash| hasher.is_proven(lane, &password(text), hash).await.unwrap();
        assert!(check("correct horse", Some(&hash)).await);
        assert!(!check("correct house", Some(&hash)).await);
        assert!(!check("correct horse", None).await);
        assert_ne!(hasher.hash(lane, &password("correct horse")).await.unwrap(), hash, "a salt");
    }

    /// Crowds of strangers at one listener, each connection with another request as soon as one is answered, while a
    /// person elsewhere signs in again and again.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_crowd_at_one_listener_keeps_no_person_elsewhere_from_a_hash() {
        let hasher = Arc::new(PasswordHasher::default());
        let mut crowd = JoinSet::new();
        for _connection in 0..24 {
            let own = Arc::clone(&hasher);
            crowd.spawn(async move {
                loop {
                    let lane = stranger(Listener::Holders);
                    drop(own.is_proven(lane, &password("made-up password"), None).await);
                }
            });
        }
        let lanes = [stranger(Listener::Operators), Lane::of_known([7; 16])];
        for _sign_in in 0..10 {
            for lane in lanes {
                let checked = hasher.is_proven(lane, &password("correct horse"), None).await;
                assert!(matches!(checked, Ok(false)), "{checked:?}");
            }
        }
        crowd.shutdown().await;
    }
}
