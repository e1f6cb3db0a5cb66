//! A request held against the contract of its model: how long it may be, and which fields it may
//! use.

use std::collections::BTreeMap;

use holdfast_domain::model::{Contract, RestrictedField};
use holdfast_domain::request::{
    AssistantMessage, CacheRetention, ContentPart, CustomTool, Function, Item, Message, Opaque,
    ReasoningEffort, Request, Role, ServiceTier, Tool, Verbosity, Voice,
};

use super::field::{Path, either};
use super::{BadRequest, MEMBERS, content, message, tool};
use crate::json;
use crate::nearest::nearest;

/// Holds a request against the contract of its model. `body` is what it was read from: the normal
/// form does not know by which of its two names a bound was sent.
pub fn check(request: &Request, body: &[u8], contract: &Contract) -> Result<(), BadRequest> {
    let bound = contract.max_output_tokens;
    if request.max_output_tokens.is_some_and(|wanted| wanted > bound) {
        return Err(Path::Member(&Path::Body, bound_name(body))
            .invalid(format_args!("an integer from 1 to {bound} for this model")));
    }
    let judge = ContractCheck(contract);
    judge.members(request)?;
    judge.options(request)?;
    judge.tools(&request.tools)?;
    let messages = Path::Member(&Path::Body, "messages");
    let mut turns = request.messages.iter().enumerate();
    turns.try_for_each(|(at, message)| judge.message(&Path::Element(&messages, at), message))
}

fn bound_name(body: &[u8]) -> &'static str {
    let newer = "max_completion_tokens";
    // Read a second time, but only for an error: it should name the field that the caller sent.
    let is_newer = json::parse(body).is_ok_and(|body| body.get(newer).is_some());
    if is_newer { newer } else { "max_tokens" }
}

/// The words of a member that every model may be sent; none for a member that has no words.
#[must_use]
pub fn known_words(member: &str) -> Vec<&'static str> {
    match member {
        "reasoning_effort" => ReasoningEffort::ALL.iter().map(|word| word.label()).collect(),
        "verbosity" => Verbosity::ALL.iter().map(|word| word.label()).collect(),
        "service_tier" => ServiceTier::ALL.iter().map(|word| word.label()).collect(),
        "prompt_cache_retention" => CacheRetention::ALL.iter().map(|word| word.label()).collect(),
        _ => Vec::new(),
    }
}

struct ContractCheck<'a>(&'a Contract);

impl ContractCheck<'_> {
    /// Refuses unknown members of the body, and unknown words of its members.
    fn members(&self, request: &Request) -> Result<(), BadRequest> {
        let is_member = |name: &&String| !Request::WORDS.contains(&name.as_str());
        for (name, word) in request.extras.iter().filter(|(name, _)| !is_member(name)) {
            self.word(name, word)?;
        }
        let unknown = self.unknown(&request.extras).find(is_member);
        self.refuse(&Path::Body, unknown, &MEMBERS)
    }

    /// Refuses a word of a member that has words, unless the model accepts it.
    fn word(&self, name: &str, word: &Opaque) -> Result<(), BadRequest> {
        let word = word.as_str().trim_matches('"');
        if self.0.accepts_word(name, word) {
            return Ok(());
        }
        let known = known_words(name).into_iter().chain(self.0.accepted_words(name));
        let known: Vec<_> = known.collect();
        Err(Path::Member(&Path::Body, name).invalid(format_args!("{}", either(&known))))
    }

    /// Refuses unknown members of a turn, a part or a tool.
    fn extras(
        &self,
        path: &Path<'_>,
        extras: &BTreeMap<String, Opaque>,
        known: &[&str],
    ) -> Result<(), BadRequest> {
        self.refuse(path, self.unknown(extras).next(), known)
    }

    /// Refuses unknown members of an assistant's turn, but for those that clients keep beside an
    /// answer: these are left out when the turn is sent, unless the model accepts them.
    fn reply_extras(
        &self,
        path: &Path<'_>,
        extras: &BTreeMap<String, Opaque>,
    ) -> Result<(), BadRequest> {
        let is_metadata = |name: &&String| AssistantMessage::METADATA.contains(&name.as_str());
        let unknown = self.unknown(extras).find(|name| !is_metadata(name));
        self.refuse(path, unknown, &message::REPLY_MEMBERS)
    }

    fn refuse(
        &self,
        path: &Path<'_>,
        unknown: Option<&String>,
        known: &[&str],
    ) -> Result<(), BadRequest> {
        unknown.map_or(Ok(()), |name| {
            Err(Path::Member(path, name).unknown(self.suggestion(name, known)))
        })
    }

    fn suggestion<'n>(&'n self, name: &str, known: &[&'n str]) -> Option<&'n str> {
        let accepted = self.0.accepts.iter().map(String::as_str);
        nearest(name, known.iter().copied().chain(accepted))
    }

    fn unknown<'e>(
        &self,
        extras: &'e BTreeMap<String, Opaque>,
    ) -> impl Iterator<Item = &'e String> {
        extras.keys().filter(|name| !self.0.accepts.contains(name))
    }

    fn options(&self, request: &Request) -> Result<(), BadRequest> {
        let tier = request.service_tier;
        // Another tier than the account's usual one has another price at the provider.
        let is_usual = |tier| matches!(tier, ServiceTier::Auto | ServiceTier::Default);
        let is_other = tier.is_some_and(|tier| {
            !is_usual(tier) && !self.0.accepts_word("service_tier", tier.label())
        });
        let body = |name| Path::Member(&Path::Body, name);
        // `store: false` keeps nothing and needs no permission; null reads as absent.
        self.restricted(request.store == Some(true), RestrictedField::Store, &body("store"))?;
        self.restricted(is_other, RestrictedField::ServiceTier, &body("service_tier"))?;
        let web = request.web_search_options.is_some();
        self.restricted(web, RestrictedField::WebSearchOptions, &body("web_search_options"))?;
        let moderation = request.moderation.is_some();
        self.restricted(moderation, RestrictedField::Moderation, &body("moderation"))?;
        let retention = request.prompt_cache_retention.is_some();
        let retention_path = body("prompt_cache_retention");
        self.restricted(retention, RestrictedField::PromptCacheRetention, &retention_path)?;
        let custom = request.audio.as_ref().is_some_and(|a| matches!(a.voice, Voice::Custom(_)));
        let (audio, voice) = (body("audio"), "voice");
        let voice = Path::Member(&audio, voice);
        self.restricted(custom, RestrictedField::VoiceId, &Path::Member(&voice, "id"))
    }

    fn tools(&self, tools: &[Tool]) -> Result<(), BadRequest> {
        let path = Path::Member(&Path::Body, "tools");
        tools.iter().enumerate().try_for_each(|(at, tool)| {
            let (Tool::Function(Function { extras, .. }) | Tool::Custom(CustomTool { extras, .. })) =
                tool;
            self.extras(&Path::Element(&path, at), extras, &tool::MEMBERS)
        })
    }

    fn message(&self, path: &Path<'_>, message: &Message) -> Result<(), BadRequest> {
        match &message.role {
            Role::Assistant(reply) => {
                self.reply_extras(path, &message.extras)?;
                let audio = Path::Member(path, "audio");
                let id = Path::Member(&audio, "id");
                self.restricted(reply.audio_id.is_some(), RestrictedField::AudioId, &id)?;
            }
            Role::Developer | Role::System | Role::User | Role::Tool { .. } | Role::Function => {
                self.extras(path, &message.extras, &message::MEMBERS)?;
            }
        }
        let content = Path::Member(path, "content");
        let mut parts = message.parts().iter().enumerate();
        parts.try_for_each(|(at, part)| self.part(&Path::Element(&content, at), part))
    }

    fn part(&self, path: &Path<'_>, part: &ContentPart) -> Result<(), BadRequest> {
        self.extras(path, &part.extras, &content::MEMBERS)?;
        let kept = matches!(&part.item, Item::File { id: Some(_), .. });
        let file = Path::Member(path, "file");
        self.restricted(kept, RestrictedField::FileId, &Path::Member(&file, "file_id"))
    }

    fn restricted(
        &self,
        is_used: bool,
        field: RestrictedField,
        path: &Path<'_>,
    ) -> Result<(), BadRequest> {
        if !is_used || self.0.allow.contains(&field) {
            return Ok(());
        }
        Err(path.unsupported(match field {
            RestrictedField::Store => "false for this model",
            RestrictedField::ServiceTier => "auto or default for this model",
            RestrictedField::FileId
            | RestrictedField::AudioId
            | RestrictedField::VoiceId
            | RestrictedField::WebSearchOptions
            | RestrictedField::Moderation
            | RestrictedField::PromptCacheRetention => "left out for this model",
        }))
    }
}
