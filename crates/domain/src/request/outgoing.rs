//! A request in the form that is sent to a provider. Not every member of a caller's request is a provider's to
//! know: the fingerprint covers the caller's request, and this is made from it afterwards, so two requests that
//! are the same stay the same on the way up.

use std::sync::Arc;

use super::{Message, Request, Role};
use crate::secret::PseudonymKey;

impl Request {
    /// Reduces a request to the members that a provider may be sent: without the metadata that the model does
    /// not accept by name, and with pseudonyms for the caller's end users and cache keys, which under one
    /// account of the operator's would meet those of other API keys. Copies the request only if others still
    /// hold it.
    pub fn make_outgoing(request: &mut Arc<Self>, accepts: &[String], key: &PseudonymKey) {
        // Nothing to leave out or to rename, so nothing to copy.
        if request.is_outgoing() {
            return;
        }
        let request = Arc::make_mut(request);
        // After the fingerprint: what is stripped here still tells one request from another.
        request.messages.iter_mut().for_each(|message| message.strip_metadata(accepts));
        let Self { user, safety_identifier, prompt_cache_key, .. } = request;
        for name in [user, safety_identifier, prompt_cache_key].into_iter().flatten() {
            *name = key.pseudonym(name);
        }
    }

    fn is_outgoing(&self) -> bool {
        let is_plain = |message: &Message| match &message.role {
            Role::Assistant(_) => message.extras.is_empty(),
            Role::Developer | Role::System | Role::User | Role::Tool { .. } | Role::Function => {
                true
            }
        };
        let names = [&self.user, &self.safety_identifier, &self.prompt_cache_key];
        names.into_iter().all(Option::is_none) && self.messages.iter().all(is_plain)
    }
}
