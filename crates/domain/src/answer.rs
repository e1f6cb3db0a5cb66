//! What a model said, as it arrives and when it is whole.

use std::collections::BTreeMap;
use std::fmt;

/// Why a choice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// By itself or at a stop sequence.
    Stop,
    /// At a bound of the request, the model or the gateway.
    Length,
    /// The provider's filter cut it.
    ContentFilter,
}

/// A piece of an answer. An answer that arrives whole is one delta.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// What each choice gained.
    pub choices: Vec<ChoiceDelta>,
}

/// What one choice gained.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ChoiceDelta {
    /// Which choice, from zero.
    pub index: u32,
    /// More text.
    pub content: Option<String>,
    /// More of a refusal.
    pub refusal: Option<String>,
    /// Its end.
    pub finish: Option<FinishReason>,
}

/// An answer put together from its deltas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    choices: BTreeMap<u32, Choice>,
}

/// One choice of an answer.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// The text, if there was any.
    pub content: Option<String>,
    /// The refusal, if there was one.
    pub refusal: Option<String>,
    /// Why it ended; `None` while it has not.
    pub finish: Option<FinishReason>,
}

impl Answer {
    /// Adds what arrived.
    pub fn append(&mut self, delta: Delta) {
        for gained in delta.choices {
            let choice = self.choices.entry(gained.index).or_default();
            append(&mut choice.content, gained.content);
            append(&mut choice.refusal, gained.refusal);
            choice.finish = choice.finish.or(gained.finish);
        }
    }

    /// Whether every one of `n` choices is there and has ended: anything less is a broken answer.
    #[must_use]
    pub fn is_whole(&self, n: u32) -> bool {
        (0..n).eq(self.choices.keys().copied())
            && self.choices.values().all(|choice| choice.finish.is_some())
    }

    /// The choices in their order, each with its index.
    pub fn choices(&self) -> impl Iterator<Item = (u32, &Choice)> {
        self.choices.iter().map(|(index, choice)| (*index, choice))
    }

    /// UTF-8 bytes of everything the model said: what an estimate counts.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        let texts = self.choices.values().flat_map(|choice| [&choice.content, &choice.refusal]);
        texts.flatten().fold(0_u64, |sum, text| {
            sum.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX))
        })
    }
}

/// Lengths, no content: it may reach a log.
impl fmt::Debug for ChoiceDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChoiceDelta({}: ", self.index)?;
        shown(f, &self.content, &self.refusal, self.finish)
    }
}

/// Lengths, no content: it may reach a log.
impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choice(")?;
        shown(f, &self.content, &self.refusal, self.finish)
    }
}

fn shown(
    f: &mut fmt::Formatter<'_>,
    content: &Option<String>,
    refusal: &Option<String>,
    finish: Option<FinishReason>,
) -> fmt::Result {
    let [content, refusal] = [content, refusal].map(|text| text.as_ref().map(String::len));
    write!(f, "content {content:?}, refusal {refusal:?}, finish {finish:?})")
}

fn append(to: &mut Option<String>, more: Option<String>) {
    match (to.as_mut(), more) {
        (Some(text), Some(more)) => text.push_str(&more),
        (None, Some(more)) => *to = Some(more),
        (_, None) => {}
    }
}
