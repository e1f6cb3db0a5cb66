//! A secret as it is told, once: the key itself, and programs that use it. It is on the page that answers the form, and
//! nowhere else: not in an address, not in a log, and not when the form is sent again.

use holdfast_accounts::IssuedApiKey;
use holdfast_domain::credential::{ApiKey, Bearer};
use holdfast_domain::model::{ModelPattern, PublicModelId};

use crate::kit::cell::{Cell, Tone};
use crate::kit::form::FormOutcome;
use crate::kit::section::{Facts, Notice, Snippet};

/// Stands where no model is on offer.
const MODEL: &str = "publisher/model";

/// Answer of a form that made a credential: told once, or that it was told. Its programs ask the gateway at `base_url`.
pub(crate) fn told(issued: &IssuedApiKey, offered: &[String], base_url: &str) -> FormOutcome {
    let key = &issued.api_key;
    let page = format!("/keys/{}", key.id);
    let Some(bearer) = &issued.bearer else {
        let text = "The secret was told in the first answer to this form, and is told once. If it \
                    was lost, rotate the key for another one.";
        let notice = Notice::new(Tone::Warning, text).link("Rotate", format!("{page}/rotate"));
        let notice = notice.link("To the API key", page);
        return FormOutcome::done().section(notice).telling_once();
    };
    let text = "Copy the key now: it is shown on this page alone, and nobody can be told it later.";
    let notice = Notice::new(Tone::Warning, text).link("To the API key", page);
    let mut applied =
        FormOutcome::done().section(notice).section(Snippet::new("API key", bearer.expose()));
    if let Some(end) = issued.others_end_at {
        let rows = vec![("Other credentials end by", Cell::moment(end))];
        applied = applied.section(Facts::new("", rows));
    }
    let model = model(key, offered);
    let snippets = [
        ("For a shell", exports(base_url, bearer)),
        ("curl", curl(&model)),
        ("Python (pip install openai)", python(&model)),
        ("Node (npm install openai, in a file that ends in .mjs)", node(&model)),
    ];
    let add = |applied: FormOutcome, (title, text): (&str, String)| {
        applied.section(Snippet::new(title, text))
    };
    snippets.into_iter().fold(applied, add).telling_once()
}

/// A model that the key may use.
fn model(key: &ApiKey, offered: &[String]) -> String {
    let listed = key.grant.models.iter().flatten().map(ModelPattern::as_str);
    let listed = listed.filter_map(|entry| PublicModelId::try_from(entry).ok());
    let offered = offered.iter().filter_map(|id| PublicModelId::try_from(id.as_str()).ok());
    let mut usable = listed.chain(offered).filter(|model| key.grant.allows(model));
    usable.next().map_or_else(|| MODEL.to_owned(), |model| model.to_string())
}

fn exports(base_url: &str, bearer: &Bearer) -> String {
    format!("export HOLDFAST_URL={base_url}\nexport HOLDFAST_KEY={}", bearer.expose())
}

fn curl(model: &str) -> String {
    format!(
        r#"curl --retry 5 --retry-all-errors "$HOLDFAST_URL/chat/completions" \
  -H "Authorization: Bearer $HOLDFAST_KEY" \
  -H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen | tr A-Z a-z)" \
  -H 'Content-Type: application/json' \
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "hello"}}]}}'"#
    )
}

fn python(model: &str) -> String {
    format!(
        r#"import os
import uuid

from openai import OpenAI

client = OpenAI(base_url=os.environ["HOLDFAST_URL"], api_key=os.environ["HOLDFAST_KEY"])
answer = client.chat.completions.create(
    model="{model}",
    messages=[{{"role": "user", "content": "hello"}}],
    extra_headers={{"Idempotency-Key": str(uuid.uuid4())}},
)
print(answer.choices[0].message.content)"#
    )
}

fn node(model: &str) -> String {
    format!(
        r"import OpenAI from 'openai';

const client = new OpenAI({{ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY }});
const answer = await client.chat.completions.create(
  {{ model: '{model}', messages: [{{ role: 'user', content: 'hello' }}] }},
  {{ headers: {{ 'Idempotency-Key': crypto.randomUUID() }} }},
);
console.log(answer.choices[0].message.content);"
    )
}
