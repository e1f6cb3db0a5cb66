//! Reading of a request's options: all members but the conversation, its tools and plain numbers.
//!
//! Two requests with the same meaning are equal here: a single stop sequence is an array of one, an absent
//! format is plain text, modalities are a set. An option that decides nothing here (a prediction, a search, a
//! moderation) is read to check that it is well formed, and then kept as the caller wrote it.
//!
//! The limits are OpenAI's; a test compares the schema in `openapi.json` with this reader.

use std::collections::BTreeMap;

use holdfast_domain::request::{
    Audio, AudioFormat, CacheMode, CacheOptions, CacheTtl, Content, JsonSchema, Modalities, Opaque,
    ResponseFormat, Voice,
};

use super::BadRequest;
use super::content;
use super::field::{self, Field, Path};
use super::object::Object;
use crate::json::Node;

pub(crate) const STOP_MAX: usize = 4;
pub(crate) const BIAS_MAX: i64 = 100;
pub(crate) const METADATA_PAIRS_MAX: usize = 16;
pub(crate) const METADATA_KEY_CHARS_MAX: usize = 64;
pub(crate) const METADATA_VALUE_CHARS_MAX: usize = 512;
pub(crate) const SAFETY_IDENTIFIER_CHARS_MAX: usize = 128;

/// Stop sequences. A string is an array of one.
pub(super) fn stop(field: Field<'_, '_>) -> Result<Vec<String>, BadRequest> {
    if let Node::String(text) = field.node {
        return Ok(vec![text.into_owned()]);
    }
    let what = format!("a string or an array of at most {STOP_MAX} strings");
    field.array(0..=STOP_MAX, &what, field::string)
}

pub(super) fn metadata(field: Field<'_, '_>) -> Result<BTreeMap<String, String>, BadRequest> {
    let path = field.path;
    let members = members(field, "an object of strings")?;
    if members.len() > METADATA_PAIRS_MAX {
        return Err(path.invalid(format_args!("an object of at most {METADATA_PAIRS_MAX} pairs")));
    }
    let pair = |(name, node): (String, Node<'_>)| {
        let path = Path::Member(&path, &name);
        let value = field::string(Field { path, node })?;
        // Characters and not bytes: OpenAI's limits count them so.
        if name.chars().count() > METADATA_KEY_CHARS_MAX {
            return Err(path.invalid(format_args!(
                "under a key of at most {METADATA_KEY_CHARS_MAX} characters"
            )));
        }
        if value.chars().count() > METADATA_VALUE_CHARS_MAX {
            return Err(path.invalid(format_args!(
                "a string of at most {METADATA_VALUE_CHARS_MAX} characters"
            )));
        }
        Ok((name, value))
    };
    members.into_iter().map(pair).collect()
}

pub(super) fn logit_bias(field: Field<'_, '_>) -> Result<BTreeMap<String, i8>, BadRequest> {
    let path = field.path;
    let bias = |(name, node): (String, Node<'_>)| {
        let path = Path::Member(&path, &name);
        let bias = Field { path, node }.integer(-BIAS_MAX, BIAS_MAX)?;
        // It always fits: the range was checked above.
        Ok((name, i8::try_from(bias).unwrap_or_default()))
    };
    members(field, "an object of integers")?.into_iter().map(bias).collect()
}

fn members<'a>(field: Field<'_, 'a>, what: &str) -> Result<Vec<(String, Node<'a>)>, BadRequest> {
    match field.node {
        Node::Object(members) => {
            Ok(members.into_iter().map(|(name, node)| (name.into_owned(), node)).collect())
        }
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Array(_) => {
            Err(field.path.invalid(format_args!("{what}")))
        }
    }
}

pub(super) fn safety_identifier(field: Field<'_, '_>) -> Result<String, BadRequest> {
    let path = field.path;
    let id = field::string(field)?;
    if id.chars().count() > SAFETY_IDENTIFIER_CHARS_MAX {
        return Err(path.invalid(format_args!(
            "a string of at most {SAFETY_IDENTIFIER_CHARS_MAX} characters"
        )));
    }
    Ok(id)
}

/// Format of the answer; `None` for plain text, which is also what an absent one means.
pub(super) fn response_format(field: Field<'_, '_>) -> Result<Option<ResponseFormat>, BadRequest> {
    const KINDS: [&str; 3] = ["text", "json_object", "json_schema"];
    let mut format = Object::read(field, "an object with a `type`")?;
    let read = match format.required("type", |field| field.one_of(&KINDS, |kind| kind))? {
        "json_object" => Some(ResponseFormat::JsonObject),
        "json_schema" => Some(format.required("json_schema", json_schema)?),
        _ => None,
    };
    format.end()?;
    Ok(read)
}

fn json_schema(field: Field<'_, '_>) -> Result<ResponseFormat, BadRequest> {
    let mut schema = Object::read(field, "an object with `name`")?;
    let read = JsonSchema {
        name: schema.required("name", field::identifier)?,
        description: schema.optional("description", field::string)?,
        schema: schema.optional("schema", field::opaque_object)?,
        strict: schema.optional("strict", field::boolean)?,
    };
    schema.end()?;
    Ok(ResponseFormat::JsonSchema(read))
}

/// Kinds of output, a set: their order makes no difference between two requests.
pub(super) fn modalities(field: Field<'_, '_>) -> Result<Modalities, BadRequest> {
    let what = "an array of text, audio or both";
    let all =
        field.array(1..=usize::MAX, what, |field| field.one_of(&["text", "audio"], |name| name))?;
    Ok(match (all.contains(&"text"), all.contains(&"audio")) {
        (true, true) => Modalities::Both,
        (false, true) => Modalities::Audio,
        (_, false) => Modalities::Text,
    })
}

pub(super) fn audio(field: Field<'_, '_>) -> Result<Audio, BadRequest> {
    let mut audio = Object::read(field, "an object with `voice` and `format`")?;
    let voice = audio.required("voice", |field| {
        if let Node::String(name) = field.node {
            return Ok(Voice::Named(name.into_owned()));
        }
        let mut voice = Object::read(field, "the name of a voice, or an object with `id`")?;
        let id = voice.required("id", field::string)?;
        voice.end()?;
        Ok(Voice::Custom(id))
    })?;
    let format =
        audio.required("format", |field| field.one_of(AudioFormat::ALL, AudioFormat::label))?;
    audio.end()?;
    Ok(Audio { voice, format })
}

pub(super) fn cache_options(field: Field<'_, '_>) -> Result<CacheOptions, BadRequest> {
    let mut options = Object::read(field, "an object")?;
    let mode = options
        .optional_or_empty("mode", |field| field.one_of(CacheMode::ALL, CacheMode::label))?;
    let ttl =
        options.optional_or_empty("ttl", |field| field.one_of(CacheTtl::ALL, CacheTtl::label))?;
    options.end()?;
    Ok(CacheOptions { mode, ttl })
}

/// A predicted text. It is read to see that it is one, and kept as it is; so are the next two.
pub(super) fn prediction(field: Field<'_, '_>) -> Result<Opaque, BadRequest> {
    // Before the reading, which takes the value apart.
    let kept = field.node.to_opaque();
    let mut prediction = Object::read(field, "an object with `type` and `content`")?;
    prediction.expect_type("content")?;
    prediction.required("content", |field| {
        let path = field.path;
        let Content::Parts(parts) = content::read(field, content::TEXT)? else { return Ok(()) };
        // No contract looks into a prediction: what is not known in one of its parts is refused here.
        let unknown = parts.iter().enumerate().find_map(|(at, part)| {
            let (name, _value) = part.extras.first_key_value()?;
            Some(Path::Member(&Path::Element(&path, at), name).unknown(None))
        });
        unknown.map_or(Ok(()), Err)
    })?;
    prediction.end()?;
    Ok(kept)
}

pub(super) fn web_search(field: Field<'_, '_>) -> Result<Opaque, BadRequest> {
    const SIZES: [&str; 3] = ["low", "medium", "high"];
    let kept = field.node.to_opaque();
    let mut options = Object::read(field, "an object")?;
    options.optional("search_context_size", |field| field.one_of(&SIZES, |size| size))?;
    options.optional("user_location", |field| {
        let mut location = Object::read(field, "an object with `type` and `approximate`")?;
        location.expect_type("approximate")?;
        location.required("approximate", |field| {
            let mut place = Object::read(field, "an object")?;
            for name in ["country", "region", "city", "timezone"] {
                place.optional(name, field::string)?;
            }
            place.end()
        })?;
        location.end()
    })?;
    options.end()?;
    Ok(kept)
}

pub(super) fn moderation(field: Field<'_, '_>) -> Result<Opaque, BadRequest> {
    let kept = field.node.to_opaque();
    let mut moderation = Object::read(field, "an object with `model`")?;
    moderation.required("model", field::string)?;
    moderation.optional("policy", |field| {
        let mut policy = Object::read(field, "an object")?;
        for side in ["input", "output"] {
            policy.optional(side, |field| {
                let mut side = Object::read(field, "an object with `mode`")?;
                side.required("mode", |field| field.one_of(&["score", "block"], |mode| mode))?;
                side.end()
            })?;
        }
        policy.end()
    })?;
    moderation.end()?;
    Ok(kept)
}
