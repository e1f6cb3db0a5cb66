//! What a model takes beyond what every model takes, and what it ignores.

use holdfast_domain::model::{IgnoredField, RestrictedField};

use super::{LEAST, check, good, mistakes};

#[test]
fn a_model_takes_what_it_accepts_and_allows() {
    let more =
        "image_tokens = 900\naccepts = [\"top_k\"]\nallow = [\"service_tier\", \"audio.id\"]\n";
    let config = good(&LEAST.replace("contract = 1\n", &format!("contract = 1\n{more}")));
    let contract = &config.models.first().unwrap().contract;
    assert_eq!(contract.image_tokens, Some(900));
    assert_eq!(contract.accepts, ["top_k"]);
    assert_eq!(contract.allow, [RestrictedField::AudioId, RestrictedField::ServiceTier].into());
    let words = "accepts = [\"service_tier=on_demand\", \"service_tier = flex\", \
                 'reasoning_effort: \"default\"', \"x:y\"]\n";
    let config = good(&LEAST.replace("contract = 1\n", &format!("contract = 1\n{words}")));
    assert_eq!(
        config.models.first().unwrap().contract.accepts,
        ["service_tier=on_demand", "service_tier=flex", "reasoning_effort=default", "x:y"]
    );
    for (more, mistake) in [
        (
            "accepts = [\"service_teir=flex\"]",
            "file:6: `models.accepts` opens a word of `service_teir`, which has no words to open: did you \
             mean `service_tier`? those are words of reasoning_effort, verbosity, service_tier, \
             prompt_cache_retention",
        ),
        (
            "accepts = [\"reasoning_effort=\"]",
            "file:6: `models.accepts` must have 1 to 64 letters, digits, `_`, `-` and `.` after \
             `reasoning_effort=`",
        ),
        (
            "accepts = [\"verbosity=low\"]",
            "file:6: `models.accepts` opens `low` of `verbosity`, which every model takes without it, or \
             which `allow` is for: leave it out",
        ),
        (
            "accepts = [\"service_tier=auto\"]",
            "file:6: `models.accepts` opens `auto` of `service_tier`, which every model takes without it, \
             or which `allow` is for: leave it out",
        ),
        (
            "accepts = [\"service_tier\"]",
            "file:6: `models.accepts` names `service_tier`, which every model takes without it, or which \
             `allow` is for: leave it out, or open one more word of it, as \"service_tier=WORD\"",
        ),
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

#[test]
fn a_model_ignores_members_by_name_but_none_that_bounds_routes_or_identifies() {
    let ignoring = |names: &str| {
        LEAST.replace("contract = 1\n", &format!("contract = 1\nignores = [{names}]\n"))
    };
    let contract = |text: &str| good(text).models.swap_remove(0).contract;
    assert_eq!(contract(LEAST).ignores, []);
    let some = contract(&ignoring("\"user\", \"reasoning_effort\""));
    assert_eq!(some.ignores, [IgnoredField::User, IgnoredField::ReasoningEffort]);
    for field in IgnoredField::ALL {
        assert_eq!(contract(&ignoring(&format!("\"{}\"", field.label()))).ignores, [field]);
        // Of a caller's field and not of a name that no caller sends.
        assert!(holdfast_wire::chat::request::is_known_member(field.label()), "{}", field.label());
    }
    for (name, why) in [
        ("audio", "chooses between prices"),
        ("function_call", "identifies the request"),
        ("functions", "identifies the request"),
        ("max_completion_tokens", "bounds the answer"),
        ("max_tokens", "bounds the answer"),
        ("messages", "identifies the request"),
        ("modalities", "chooses between prices"),
        ("model", "identifies the request"),
        ("n", "bounds the answer"),
        ("service_tier", "chooses between prices"),
        ("stop", "bounds the answer"),
        ("stream", "is the form of the answer"),
        ("stream_options", "is the form of the answer"),
        ("tool_choice", "identifies the request"),
        ("tools", "identifies the request"),
        ("web_search_options", "chooses between prices"),
    ] {
        assert!(holdfast_wire::chat::request::is_known_member(name), "{name}");
        let mistake = format!(
            "file:6: `models.ignores` names `{name}`, which {why} and is never ignored: remove it"
        );
        check("contract = 1\n", &format!("contract = 1\nignores = [\"{name}\"]\n"), &mistake);
    }
    let known = IgnoredField::ALL.map(IgnoredField::label).join(", ");
    for (name, meant) in [
        ("usr", "did you mean `user`? "),
        ("resoning_effort", "did you mean `reasoning_effort`? "),
        ("top_k", "did you mean `top_p`? "),
        ("zzzzzzzz", ""),
        ("", ""),
    ] {
        let mistake =
            format!("file:6: `models.ignores` names no field to ignore: {meant}those are {known}");
        check("contract = 1\n", &format!("contract = 1\nignores = [\"{name}\"]\n"), &mistake);
    }
}

#[test]
fn aliases_are_other_names_of_one_model() {
    let named = |aliases: &str| {
        LEAST.replace("contract = 1\n", &format!("aliases = [{aliases}]\ncontract = 1\n"))
    };
    let config = good(&named("\"smart\", \"gpt-4o_mini.2\""));
    let aliases = &config.models.first().unwrap().aliases;
    assert_eq!(
        aliases.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["smart", "gpt-4o_mini.2"]
    );
    assert!(good(LEAST).models.first().unwrap().aliases.is_empty());
    let many = |n: usize| (0..n).map(|at| format!("\"a{at}\"")).collect::<Vec<_>>().join(", ");
    good(&named(&many(16)));
    let too_many = "file:5: `models.aliases` has 17 aliases: a model has at most 16";
    check("contract = 1\n", &format!("aliases = [{}]\ncontract = 1\n", many(17)), too_many);
    let first = named("\"smart\"");
    let (_providers, model) = first.split_once("[[models]]").unwrap();
    let second = model.replace("holdfast/sim-1", "holdfast/sim-2");
    let taken = "file:17: `models.aliases` smart is the alias of line 5 already: write another";
    assert_eq!(mistakes(&format!("{first}[[models]]{second}")), [taken]);
}
