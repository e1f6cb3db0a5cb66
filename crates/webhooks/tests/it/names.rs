//! Resolvers that say what a test wants, and count how often they are asked.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Mutex;

use async_trait::async_trait;
use holdfast_webhooks::Resolver;

/// Answers of a resolver, one for each time that it is asked; the last one again and again.
#[derive(Debug)]
pub(crate) struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    /// A name has these addresses at the first look-up, those at the second.
    pub(crate) fn changing(answers: &[&[&str]]) -> Self {
        let address = |text: &&str| text.parse().unwrap();
        let answers = answers.iter().map(|answer| answer.iter().map(address).collect());
        Self { answers: answers.collect(), asked: Mutex::default() }
    }

    /// Every name has these addresses.
    pub(crate) fn of(addresses: &[&str]) -> Self {
        Self::changing(&[addresses])
    }

    /// Every name that was looked up.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let answer = self.answers.get(asked.len()).or(self.answers.last());
        asked.push(name.to_owned());
        Ok(answer.cloned().unwrap_or_default())
    }
}

/// A resolver that knows no name.
#[derive(Debug)]
pub(crate) struct NoNames;

#[async_trait]
impl Resolver for NoNames {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Err(ErrorKind::NotFound.into())
    }
}

/// A resolver that never answers.
#[derive(Debug)]
pub(crate) struct SilentNames;

#[async_trait]
impl Resolver for SilentNames {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}
