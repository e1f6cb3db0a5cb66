//! Missing model by server: names and texts of errors of status 400 or 422 for a model that the
//! server does not have. The route is wrong, the call did not run, and the next route may be tried.
//! One table for all kinds.
//!
//! A row of this table is a proof of not-run: a wrong row costs a second run. So a row is an exact
//! name with no other meaning, or a whole text, in the error's own message. The error of another
//! server that a relay passes on is no proof.

/// Names of the error: its `code` or its `type`.
pub(super) const NAMES: &[&str] = &[
    // OpenAI's error guide; relays that answer 400 for it; Hugging Face's routes.
    "model_not_found",
    "model_not_supported",
    // Mistral (`code` 1500; langchaingo#1233) and Perplexity (perplexityai/api-discussion#262).
    "invalid_model",
    // Together: a model that only runs on an endpoint of one's own.
    "model_not_available",
    // Azure AI Foundry and GitHub Models.
    "unknown_model",
    "unavailable_model",
    // Azure OpenAI's error guide; the second is of a model that has no chat.
    "DeploymentNotFound",
    "OperationNotSupported",
    // Groq's page on deprecations.
    "model_decommissioned",
];

/// Texts, in the form of [`shape`](super::shape), from their beginning.
#[rustfmt::skip]
pub(super) const TEXTS: &[&str] = &[
    // OpenRouter (OpenRouterTeam/openrouter-examples#74).
    "~ is not a valid model id$",
    // DeepSeek, old (langbot#1643) and since its V4.
    "model not exist$",
    "the supported api model names are *, but you passed ~$",
    // Mistral, Perplexity, with and without their names.
    "invalid model: ~$",
    "invalid model *. permitted models can be found in the documentation at ~$",
    // OpenAI and vLLM, by relays that answer 400 instead of 404.
    "the model ~ does not exist$",
    "the model ~ does not exist or you do not have access to it$",
    "the requested model ~ does not exist$",
    // Ollama and llama.cpp's router.
    "model ~ not found$",
    "model ~ not found, try pulling it first$",
    // xAI.
    "model not found: ~$",
    // LiteLLM's proxy (litellm#3142).
    "/chat/completions: invalid model name passed in model=~. call /v1/models to view available models for your key$",
    // Together.
    "unable to access non-serverless model ~. please visit ~ to create and start a new dedicated endpoint for the model$",
    // Groq.
    "the model ~ has been decommissioned and is no longer supported.",
    // Azure AI Foundry (new-foundry-portal#127).
    "unknown model: ~$",
    "unavailable model: ~$",
    // SiliconFlow; Z.ai.
    "model does not exist. please check it carefully$",
    "unknown model, please check the model code$",
    // Gemini: the path of the call names no model.
    "~ generatecontentrequest.model: unexpected model name format$",
    // Bedrock's ValidationException: no such model, none of this form, none for sale by the token,
    // none that converses (AWS's re:Post on these texts; pi#4993).
    "the provided model identifier is invalid$",
    "1 validation error detected: value ~ at modelid failed to satisfy constraint:",
    "1 validation error detected: value at modelid failed to satisfy constraint:",
    "invocation of model id ~ with on-demand throughput isnt supported.",
    "this action doesnt support the model that you provided. try again with a supported text or chat model$",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::shape::{fits, normal};

    const SEEN: &[&str] = &[
        "google/gemini-2.0-pro-exp-02-05:free is not a valid model ID",
        "Model Not Exist",
        "The supported API model names are deepseek-v4-pro or deepseek-v4-flash, but you passed deepseek-chat.",
        "Invalid model: mistral-huge",
        "Invalid model 'sonar-pro '. Permitted models can be found in the documentation at https://docs.perplexity.ai/guides/model-cards.",
        "The model `acme-1` does not exist.",
        "The model `acme-1` does not exist or you do not have access to it.",
        "The requested model 'acme-1' does not exist.",
        "model \"acme:7b\" not found",
        "model 'acme:7b' not found, try pulling it first",
        "Model not found: acme-1",
        "/chat/completions: Invalid model name passed in model=acme. Call `/v1/models` to view available models for your key.",
        "Unable to access non-serverless model acme/one. Please visit https://api.together.ai/models/acme/one to create and start a new dedicated endpoint for the model.",
        "The model `acme-1` has been decommissioned and is no longer supported. Please refer to https://console.groq.com/docs/deprecations for a recommendation on which model to use instead.",
        "Unknown model: Acme-V4-Flash",
        "Unavailable model: acme-1",
        "Model does not exist. Please check it carefully.",
        "Unknown Model, please check the model code.",
        "* GenerateContentRequest.model: unexpected model name format",
        "The provided model identifier is invalid.",
        "1 validation error detected: Value 'acme one' at 'modelId' failed to satisfy constraint: Member must satisfy regular expression pattern: x",
        "1 validation error detected: Value 'acme' at 'modelId' failed to satisfy constraint: Member must satisfy regular expression pattern: x",
        "1 validation error detected: Value '' at 'modelId' failed to satisfy constraint: Member must have length greater than or equal to 1",
        "Invocation of model ID acme.one-v1:0 with on-demand throughput isn\u{2019}t supported. Retry your request with the ID or ARN of an inference profile that contains this model.",
        "This action doesn't support the model that you provided. Try again with a supported text or chat model.",
    ];

    fn is_no_model(text: &str) -> bool {
        TEXTS.iter().any(|shape| fits(shape, &normal(text)))
    }

    #[test]
    fn every_row_has_an_example() {
        for shape in TEXTS {
            let is_seen = SEEN.iter().any(|text| fits(shape, &normal(text)));
            assert!(is_seen, "no example of {shape}");
            assert_eq!(*shape, normal(shape), "quotes, capitals or blanks");
        }
    }

    #[test]
    fn every_example_is_recognised_except_a_model_name_with_blanks() {
        let unseen: Vec<_> = SEEN.iter().filter(|text| !is_no_model(text)).collect();
        assert_eq!(unseen.len(), 1, "{unseen:?}");
        assert!(unseen[0].contains("acme one"));
    }

    #[test]
    fn other_texts_are_not_a_proof() {
        for text in [
            "This tool is not a valid model ID",
            "Invalid value: 'x is not a valid model ID'",
            "The model returned the following errors: Model not found: acme-1",
            "Provider returned error: Model Not Exist",
            "litellm.BadRequestError: Model Not Exist",
            "The model `acme-1` does not exist. It ran for 3 s.",
            "model overloaded",
            "The model acme does not support images",
            "Invalid model: acme does not take tools",
            "2 validation errors detected: Value 'acme' at 'modelId' failed to satisfy constraint: x; Value '' at 'messages' failed",
            "The provided model identifier is invalid. Please try again later: prompt",
            "",
        ] {
            assert!(!is_no_model(text), "{text}");
        }
    }
}
