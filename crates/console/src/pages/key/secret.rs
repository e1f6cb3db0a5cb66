//! A secret as it is shown, once: the key itself, and programs that use it. Only the page that answers the form has it:
//! no address, no log, and no later answer to the form.

use holdfast_accounts::IssuedApiKey;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::model::{ModelPattern, PublicModelId};

use crate::kit::form::FormOutcome;
use crate::kit::{Cell, Facts, Notice, Snippet, Tone};
use crate::pages::parts::example;

texts! { #[template(path = "pages/key.txt")] SecretText {
    ShownBefore = "shown_before",
    Secret = "secret",
} }

/// Model of the programs if none is on offer.
const MODEL: &str = "publisher/model";

/// Answer of a form that created a credential: the secret once, or a note that it was shown.
pub(crate) fn shown_once(issued: &IssuedApiKey, offered: &[String], base_url: &str) -> FormOutcome {
    let key = &issued.api_key;
    let page = format!("/keys/{}", key.id);
    // The form was sent before. No secret is stored, so that only a rotation brings one.
    let Some(bearer) = &issued.bearer else {
        let notice = Notice::new(Tone::Warning, SecretText::ShownBefore.to_string())
            .link("Rotate", format!("{page}/rotate"));
        let notice = notice.link("Open API key", page);
        return FormOutcome::done().section(notice).telling_once();
    };
    let notice =
        Notice::new(Tone::Warning, SecretText::Secret.to_string()).link("Open API key", page);
    let mut applied =
        FormOutcome::done().section(notice).section(Snippet::new("API key", bearer.expose()));
    if let Some(end) = issued.others_end_at {
        let rows = vec![("Other credentials end", Cell::moment(end))];
        applied = applied.section(Facts::new("", rows));
    }
    let model = model(key, offered);
    let snippets = example::snippets(base_url, &bearer.expose(), &model);
    snippets.into_iter().fold(applied, FormOutcome::section).telling_once()
}

/// A model that the key may use.
fn model(key: &ApiKey, offered: &[String]) -> String {
    let listed = key.grant.models.iter().flatten().map(ModelPattern::as_str);
    let listed = listed.filter_map(|entry| PublicModelId::try_from(entry).ok());
    let offered = offered.iter().filter_map(|id| PublicModelId::try_from(id.as_str()).ok());
    let mut usable = listed.chain(offered).filter(|model| key.grant.allows(model));
    usable.next().map_or_else(|| MODEL.to_owned(), |model| model.to_string())
}
