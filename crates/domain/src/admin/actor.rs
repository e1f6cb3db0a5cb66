//! The actor of a command: what the trail names, and what request keys are bound for.

use std::fmt;
use std::str::FromStr;

use crate::{AdminKeyId, PersonId};

/// Identity of an actor that makes changes. It outlives sessions and credentials: request keys are bound for
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorId {
    /// The command line with direct database access, which needs no key.
    Local,
    /// An admin key, whichever of its credentials was shown.
    AdminKey(AdminKeyId),
    /// A person, in any session.
    Person(PersonId),
    /// A client that has proven no identity: the actor of failed sign-ins, and of no change.
    Anonymous,
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::AdminKey(id) => write!(f, "admin_key:{id}"),
            Self::Person(id) => write!(f, "person:{id}"),
            Self::Anonymous => f.write_str("anonymous"),
        }
    }
}

/// A text that names no actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an actor is local, anonymous, admin_key:<id> or person:<id>")]
pub struct BadActorId;

impl FromStr for ActorId {
    type Err = BadActorId;

    fn from_str(text: &str) -> Result<Self, BadActorId> {
        if text == "local" {
            return Ok(Self::Local);
        }
        if text == "anonymous" {
            return Ok(Self::Anonymous);
        }
        let (kind, id) = text.split_once(':').ok_or(BadActorId)?;
        let actor = if kind == "admin_key" {
            id.parse().ok().map(Self::AdminKey)
        } else {
            id.parse().ok().map(Self::Person)
        };
        // One spelling: request keys are bound to this text.
        actor.filter(|actor| actor.to_string() == text).ok_or(BadActorId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_reads_what_it_wrote_and_no_other_spelling() {
        let key = ActorId::AdminKey(AdminKeyId::from_u128(0xAB));
        let person = ActorId::Person(PersonId::from_u128(7));
        for actor in [ActorId::Local, ActorId::Anonymous, key, person] {
            assert_eq!(actor.to_string().parse(), Ok(actor));
        }
        let loud = key.to_string().to_uppercase();
        for text in ["", "root", "local:", "anonymous:", "admin_key:", "admin_key:7", &loud] {
            assert_eq!(text.parse::<ActorId>(), Err(BadActorId), "{text}");
        }
    }
}
