//! What a model takes beyond what every model takes.

use holdfast_domain::model::RestrictedField;

use super::{LEAST, check, good};

#[test]
fn a_model_takes_what_it_accepts_and_allows() {
    let more =
        "image_tokens = 900\naccepts = [\"top_k\"]\nallow = [\"service_tier\", \"audio.id\"]\n";
    let config = good(&LEAST.replace("contract = 1\n", &format!("contract = 1\n{more}")));
    let contract = &config.models.first().unwrap().contract;
    assert_eq!(contract.image_tokens, Some(900));
    assert_eq!(contract.accepts, ["top_k"]);
    assert_eq!(contract.allow, [RestrictedField::AudioId, RestrictedField::ServiceTier].into());
    for (more, mistake) in [
        ("accepts = [\"\"]", "file:6: `models.accepts` must not be empty"),
        (
            "accepts = \"top_k\"",
            "file:6: `models.accepts` is a string, but must be an array of texts, in brackets: [\"…\"]",
        ),
        (
            "allow = [\"top_k\"]",
            "file:6: `models.allow` names no field that needs allowing: those are file_id, audio.id, \
             voice.id, store, service_tier, web_search_options, moderation, prompt_cache_retention",
        ),
    ] {
        check("contract = 1\n", &format!("contract = 1\n{more}\n"), mistake);
    }
}
