//! The fold of version 2 of the normal form: values that mean what their absence means are absent.
//!
//! A reader makes a request in two steps. It reads the members, with the folds that version 1 has as
//! well (`null`, `n: 1`, a string and one bare text part). Then [`Request::fold`] takes out what
//! version 1 kept apart. A request that is read and not folded is the one that version 1 hashed, so
//! that rows of that version stay comparable without a second reader.
//!
//! `docs/reference/fingerprint.md` lists the folds and what is never folded. A further fold is a further
//! version: rows have no end, and each is compared under its own.

use super::{
    CacheMode, CacheOptions, CacheTtl, Content, ContentPart, Item, Message, Request, Role,
};

impl Request {
    /// Folds values without an effect into their absence. Version 2 of the normal form; version 1 is the
    /// request without this step.
    pub fn fold(&mut self) {
        self.stop.retain(|sequence| !sequence.is_empty());
        for name in [&mut self.user, &mut self.safety_identifier, &mut self.prompt_cache_key] {
            name.take_if(|name| name.is_empty());
        }
        self.prompt_cache_options.take_if(|options| options.is_default());
        self.extras.retain(|_name, value| !value.is_null());
        self.messages.iter_mut().for_each(Message::fold);
        // A conversation must have a turn: an empty one that is the only one is not the same as none.
        if !self.messages.iter().all(Message::is_empty_instruction) {
            self.messages.iter_mut().for_each(Message::leave_out_if_empty);
        }
    }

    /// Turns that the request has, in order, without the empty instructions that [`Self::fold`] left
    /// out. What is hashed, held for and sent is these; [`Self::messages`] are the caller's, so that a
    /// refusal names a turn by the caller's own number.
    pub fn turns(&self) -> impl Iterator<Item = &Message> + Clone {
        self.messages.iter().filter(|message| !message.is_left_out())
    }
}

impl Message {
    fn fold(&mut self) {
        self.extras.retain(|_name, value| !value.is_null());
        match &mut self.role {
            // The name of a function is the call that it answers, and required.
            Role::Function => {}
            Role::Assistant(reply) => {
                self.name.take_if(|name| name.is_empty());
                let says = self.content.is_some()
                    || reply.audio_id.is_some()
                    || !reply.tool_calls.is_empty()
                    || reply.function_call.is_some();
                reply.refusal.take_if(|refusal| says && refusal.is_empty());
            }
            Role::Developer | Role::System | Role::User | Role::Tool { .. } => {
                self.name.take_if(|name| name.is_empty());
            }
        }
        if let Some(Content::Parts(parts)) = &mut self.content {
            parts.iter_mut().for_each(ContentPart::fold);
        }
    }

    fn leave_out_if_empty(&mut self) {
        if self.is_empty_instruction() {
            self.content = None;
        }
    }

    /// True for instructions that the fold has left out. No reader makes a turn of instructions without
    /// content.
    fn is_left_out(&self) -> bool {
        self.content.is_none() && self.is_empty_instruction()
    }

    /// True for instructions without a word in them.
    fn is_empty_instruction(&self) -> bool {
        let Self { role, name, content, extras } = self;
        let says_nothing = || match content {
            None => true,
            Some(Content::Text(text)) => text.is_empty(),
            Some(Content::Parts(parts)) => parts.iter().all(|part| {
                part.is_bare_text() && matches!(&part.item, Item::Text(text) if text.is_empty())
            }),
        };
        // With a name or a further member a provider could distinguish the turn from none.
        matches!(role, Role::Developer | Role::System)
            && name.is_none()
            && extras.is_empty()
            && says_nothing()
    }
}

impl ContentPart {
    fn fold(&mut self) {
        let Item::File { id, name, data } = &mut self.item else { return };
        name.take_if(|name| name.is_empty());
        // One of the two has to stay: a part without either is not a file.
        if data.as_deref().is_some_and(|data| !data.is_empty()) {
            id.take_if(|id| id.is_empty());
        }
        if id.is_some() {
            data.take_if(|data| data.is_empty());
        }
    }
}

impl CacheOptions {
    /// True for options that are those of a request without any: marks by the provider, and the only
    /// time that there is.
    fn is_default(self) -> bool {
        let Self { mode, ttl } = self;
        matches!(mode, None | Some(CacheMode::Implicit))
            && matches!(ttl, None | Some(CacheTtl::HalfHour))
    }
}
