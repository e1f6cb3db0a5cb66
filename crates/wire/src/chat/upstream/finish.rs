//! Words for the end of a choice, as servers of OpenAI's dialect send them.
//!
//! A word that is in no table may stand for a cut answer, so an answer that ends with it is not
//! read. That holds for known words of failure, too: `error`, `abort`, `insufficient_system_resource`,
//! `network_error` have no row. The operator has the last word: `finish_reasons` of a provider.

use std::sync::Arc;

use holdfast_domain::answer::FinishReason::{self, ContentFilter, Length, Stop, ToolCalls};
use holdfast_domain::ports::UnreadableReason;

use crate::json::Node;

/// Words of OpenAI's own, which no configuration may change.
const OPENAI: [(&str, FinishReason); 5] = [
    ("stop", Stop),
    ("length", Length),
    ("tool_calls", ToolCalls),
    ("content_filter", ContentFilter),
    ("function_call", FinishReason::FunctionCall),
];

/// Words of other servers, in any case of letters, each with the server that documents it.
pub const WORDS: &[(&str, FinishReason, &str)] = &[
    ("eos_token", Stop, "text-generation-inference"),
    ("stop_sequence", Stop, "text-generation-inference, Anthropic"),
    ("eos", Stop, "Together"),
    ("load", Stop, "Ollama"),
    ("unload", Stop, "Ollama"),
    ("end_turn", Stop, "Anthropic, xAI"),
    ("pause_turn", Length, "Anthropic"),
    ("max_tokens", Length, "Anthropic, Gemini, Cohere, watsonx"),
    ("model_context_window_exceeded", Length, "Anthropic, Z.AI"),
    ("tool_use", ToolCalls, "Anthropic"),
    ("refusal", ContentFilter, "Anthropic"),
    ("safety", ContentFilter, "Gemini"),
    ("recitation", ContentFilter, "Gemini"),
    ("language", ContentFilter, "Gemini"),
    ("blocklist", ContentFilter, "Gemini"),
    ("prohibited_content", ContentFilter, "Gemini"),
    ("spii", ContentFilter, "Gemini"),
    ("image_safety", ContentFilter, "Gemini"),
    ("model_armor", ContentFilter, "Gemini"),
    ("guardrail_intervened", ContentFilter, "Bedrock"),
    ("content_filtered", ContentFilter, "Bedrock"),
    ("model_length", Length, "Mistral"),
    ("complete", Stop, "Cohere"),
    ("tool_call", ToolCalls, "Cohere"),
    ("error_toxic", ContentFilter, "Cohere"),
    ("endoftext", Stop, "AI21"),
    ("end_of_text", Stop, "Aleph Alpha"),
    ("stop_sequence_reached", Stop, "Aleph Alpha"),
    ("maximum_tokens", Length, "Aleph Alpha"),
    ("token_limit", Length, "watsonx"),
    ("max_output", Length, "MiniMax"),
    ("sensitive", ContentFilter, "Z.AI"),
    ("eosfound", Stop, "LM Studio"),
    ("stopstringfound", Stop, "LM Studio"),
    ("toolcalls", ToolCalls, "LM Studio"),
    ("maxpredictedtokensreached", Length, "LM Studio"),
    ("contextlengthreached", Length, "LM Studio"),
];

/// Words that stand for no end: the choice goes on, or its end is unknown.
const NO_END: [&str; 2] = ["null", "none"];

/// Words of one provider, as its operator has set them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinishWords(Option<Arc<[OwnWord]>>);

/// A word of the operator's, and its meaning.
type OwnWord = (Box<str>, FinishReason);

/// A word for the end of a choice that no operator can give a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFinishWord {
    /// Empty, longer than [`FinishWords::LENGTH_MAX`] bytes, or with a control character.
    #[error("a word has 1 to 64 bytes and no control characters")]
    Spelling,
    /// A word of OpenAI's.
    #[error("this word is OpenAI's own, and always has its meaning")]
    Fixed,
    /// The same word twice, by any case of letters.
    #[error("the word is there twice: capitals are no difference")]
    Twice,
}

impl FinishWords {
    /// Length of a word, in bytes at most.
    pub const LENGTH_MAX: usize = 64;
    /// No words but those of the tables.
    pub const NONE: Self = Self(None);

    /// The same words and one more.
    ///
    /// # Errors
    ///
    /// [`BadFinishWord`] for a word that can have no meaning of the operator's.
    pub fn with(self, word: &str, finish: FinishReason) -> Result<Self, BadFinishWord> {
        let is_spelled = (1..=Self::LENGTH_MAX).contains(&word.len());
        if !is_spelled || word.trim().is_empty() || word.contains(char::is_control) {
            return Err(BadFinishWord::Spelling);
        }
        if OPENAI.iter().any(|(own, _)| own.eq_ignore_ascii_case(word)) {
            return Err(BadFinishWord::Fixed);
        }
        if self.get(word).is_some() {
            return Err(BadFinishWord::Twice);
        }
        let words = self.0.iter().flat_map(|words| words.iter().cloned());
        Ok(Self(Some(words.chain([(word.into(), finish)]).collect())))
    }

    fn get(&self, word: &str) -> Option<FinishReason> {
        let found = self.0.as_ref()?.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
        found.map(|(_, finish)| *finish)
    }

    /// End of a choice by the member that names it; `None` if it names none.
    pub(super) fn read(
        &self,
        reason: Option<&Node<'_>>,
    ) -> Result<Option<FinishReason>, UnreadableReason> {
        let word = match reason {
            None | Some(Node::Null | Node::Bool(false)) => return Ok(None),
            Some(Node::Array(all)) if all.is_empty() => return Ok(None),
            Some(Node::Object(members)) if members.is_empty() => return Ok(None),
            Some(Node::String(word)) => word.trim_ascii(),
            // A number is a code of a server that no table has.
            Some(Node::Bool(true) | Node::Number(_) | Node::Array(_) | Node::Object(_)) => {
                return Err(UNKNOWN);
            }
        };
        if let Some((_, finish)) = OPENAI.iter().find(|(own, _)| *own == word) {
            return Ok(Some(*finish));
        }
        if let Some(finish) = self.get(word) {
            return Ok(Some(finish));
        }
        if word.is_empty() || NO_END.iter().any(|none| none.eq_ignore_ascii_case(word)) {
            return Ok(None);
        }
        let words = WORDS.iter().map(|(own, finish, _)| (*own, *finish)).chain(OPENAI);
        let mut found = words.filter(|(own, _)| own.eq_ignore_ascii_case(word));
        found.next().map(|(_, finish)| Some(finish)).ok_or(UNKNOWN)
    }
}

/// An end of another name may be a cut answer, which must not pass for a whole one.
const UNKNOWN: UnreadableReason = UnreadableReason::Finish("choices[].finish_reason");
