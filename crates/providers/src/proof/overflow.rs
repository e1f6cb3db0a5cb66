//! Context overflow by server: names and texts of errors for a prompt that does not fit in its
//! model's context, by itself or together with the answer's bound. One table for all kinds, because
//! a server of any kind may relay another one's error.
//!
//! The table is used only for statuses that the kind's own table has as a definitive refusal, so a
//! wrong row changes the code of an error and never who pays. No number is read from a text: the
//! caller's error has the numbers of the model's contract.
//!
//! Not here: limits of bytes (Anthropic's `request_too_large`), of one field's length (OpenAI's
//! `string_above_max_length`), of the answer alone, and of tokens a minute (Groq's 413). Their
//! remedy is another one.

/// Names of the error: its `code`, its `type` or its `status`.
pub(super) const NAMES: &[&str] = &[
    // OpenAI's error guide; Azure, Groq, Cerebras and most relays.
    "context_length_exceeded",
    // llama.cpp's server tests.
    "exceed_context_size_error",
    // Perplexity; symfony/ai's tests of its client.
    "too_many_prompt_tokens",
    // GitHub Copilot, of a model's own limit of the prompt.
    "model_max_prompt_tokens_exceeded",
    // antirez/ds4#150.
    "context_exceeded",
    // Z.ai: the reason of an answer's end, as an error's code.
    "model_context_window_exceeded",
];

/// Texts, in the form of [`shape`](super::shape).
#[rustfmt::skip]
pub(super) const TEXTS: &[&str] = &[
    // OpenAI, Azure, DeepSeek (crmne/ruby_llm's recordings), vLLM and Bedrock's Llama and Gemma: one
    // beginning, and many ends ("However, you requested …", "Please reduce …", "and your request has …").
    "this models maximum context length is # tokens",
    "this model maximum context length is # tokens",
    // OpenRouter (crmne/ruby_llm's recordings).
    "this endpoints maximum context length is # tokens",
    // OpenAI's newer models.
    "your input exceeds the context window of this model",
    "input tokens exceed the configured limit of # tokens",
    // vLLM: the bound is too large for what the prompt leaves; in old versions it is negative (vllm#4667).
    "max_tokens or max_completion_tokens is too large: #. this models maximum context length is # tokens",
    "max_tokens must be at least 1, got -#",
    // vLLM, newer versions.
    "you passed # input tokens and requested # output tokens. however, the models context length is only # tokens",
    "you passed # input characters and requested # output tokens. however, the models context length is only # tokens",
    // vLLM's engine (vllm#12165), by versions.
    "the prompt (total length #) is too long to fit into the model (context length #)",
    "the ~ prompt (length #) is longer than the maximum model length of #",
    "the prompt (length #) is longer than the maximum model length of #",
    "prompt length of # is longer than the maximum model length of #",
    // SGLang (QwenLM/Qwen3#1321), and Together.
    "the input (# tokens) is longer than the models context length (# tokens)",
    "requested token count exceeds the models maximum context length of # tokens",
    "input length (# tokens) exceeds the maximum allowed length (# tokens)",
    // SGLang; Bedrock's gpt-oss, as goabonga/stdapi recorded it.
    "input length (#) exceeds models maximum context length (#)",
    // Poolside by OpenRouter.
    "input length # exceeds the maximum allowed input length of # tokens",
    // llama.cpp's server, by versions.
    "the request exceeds the available context size",
    "request (# tokens) exceeds the available context size",
    "the request (# tokens) exceeds the available context size",
    // llama-cpp-python.
    "requested tokens (#) exceed context window of #",
    // LM Studio (cline#3664).
    "the number of tokens to keep from the initial prompt is greater than the context length",
    "tokens to keep from the initial prompt is greater than the context length",
    "trying to keep the first # tokens when context the overflows.",
    "trying to keep the first # tokens when the context overflows.",
    "context size has been exceeded$",
    // Ollama, at home and in its cloud (dyad#3498).
    "prompt too long; exceeded max context length",
    "prompt too long; exceeded context length",
    "the input length exceeds the context length",
    "input length exceeds maximum context length",
    // oMLX (ClawX#658) and other servers on Apple's machines (mlx-serve#66).
    "prompt too long: # tokens exceeds max context window of # tokens",
    "prompt exceeds maximum context length",
    // antirez/ds4.
    "prompt has # tokens, but the configured context size is # tokens",
    "prompt tokens (#) exceeds context size (#)",
    // text-generation-inference, and Hugging Face's routes.
    "inputs tokens + max_new_tokens must be <= #",
    "inputs must have less than # tokens",
    // Groq, Cerebras.
    "please reduce the length of the messages or completion",
    // Mistral, by versions.
    "prompt contains # tokens*too large for model with # maximum context length",
    "prompt # > # maximum context length",
    // Perplexity.
    "the total length of all messages is too long",
    "user input tokens exceeds # tokens",
    // xAI.
    "this models maximum prompt length is # but the request contains # tokens",
    // Fireworks.
    "the prompt is too long: #, model maximum context length: #",
    // Cohere, by versions.
    "too many tokens: size limit exceeded by # tokens",
    "too many tokens: total number of tokens in the prompt cannot exceed #",
    "too many tokens: the total number of tokens in the prompt cannot exceed #",
    // Anthropic (the texts of its errors), and its models on Bedrock and Google's cloud.
    "prompt is too long: # tokens > # maximum",
    "prompt is too long$",
    "input length and max_tokens exceed context limit",
    // Gemini and Google's cloud, by versions.
    "the input token count (#) exceeds the maximum number of tokens allowed",
    "the input token count exceeds the maximum number of tokens allowed",
    "input token count exceeds the maximum number of tokens allowed",
    "unable to submit request because the input token count is # but model only supports up to #",
    // Bedrock: its own; Nova's (recorded); Titan's.
    "input is too long for requested model",
    "input is too long$",
    "input tokens exceeded: number of input tokens exceeds maximum length",
    "too many input tokens. max input tokens: #, request input token count: #",
    "too many input tokens$",
    // Moonshot; MiniMax; Z.ai; DashScope; SiliconFlow (sjzar/chatlog#30).
    "your request exceeded model token limit: #",
    "context window exceeds limit",
    "prompt exceeds max length$",
    "range of input length should be [1, #]",
    "length of prompt_tokens (#) must be less than max_seq_len (#)",
    // GitHub Copilot.
    "prompt token count of # exceeds the limit of #",
    // watsonx.
    "the number of input tokens # cannot exceed the total tokens limit #",
    // Servers whose only text is the name of the error.
    "context length exceeded$",
    "context_length_exceeded$",
    "maximum context length exceeded$",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::shape::{any_fits, fits, normal};

    /// Servers and texts of their errors, recorded or reported: at least one per row.
    const SEEN: &[(&str, &str)] = &[
        (
            "OpenAI",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 202868 tokens (202767 in the messages, 101 in the functions). Please reduce the length of the messages or functions.",
        ),
        (
            "OpenAI, old",
            "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.",
        ),
        (
            "OpenAI, new",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (
            "OpenAI, new",
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please reduce the length of the messages.",
        ),
        (
            "text-generation-webui",
            "This model maximum context length is 4096 tokens. However, your messages resulted in over 5000 tokens.",
        ),
        (
            "DeepSeek",
            "This model's maximum context length is 131072 tokens. However, you requested 1250025 tokens (1250025 in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
        ),
        (
            "OpenRouter",
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021 tokens (2500021 of text input). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.",
        ),
        (
            "vLLM, old",
            "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion. None",
        ),
        (
            "vLLM, new",
            "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=262145)",
        ),
        (
            "vLLM, new",
            "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 98304 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=98305)",
        ),
        (
            "vLLM, new",
            "You passed 50001 input characters and requested 1000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens (at most 50000 characters).",
        ),
        (
            "vLLM, new",
            "'max_tokens' or 'max_completion_tokens' is too large: 4387. This model's maximum context length is 131072 tokens and your request has 129968 input tokens (4387 > 131072 - 129968). None",
        ),
        ("vLLM, old", "max_tokens must be at least 1, got -186."),
        (
            "vLLM's engine",
            "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
        ),
        (
            "vLLM's engine",
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
        ),
        (
            "vLLM's engine",
            "The prompt (length 5000) is longer than the maximum model length of 4096.",
        ),
        ("vLLM's engine", "Prompt length of 5000 is longer than the maximum model length of 4096."),
        (
            "SGLang",
            "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        ),
        (
            "SGLang",
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 130000 tokens from the input messages and 10000 tokens for the completion.",
        ),
        (
            "SGLang",
            "Input length (265330 tokens) exceeds the maximum allowed length (262138 tokens). Use a shorter input or enable --allow-auto-truncate.",
        ),
        ("SGLang", "Input length (265330) exceeds model's maximum context length (262144)."),
        (
            "Poolside",
            "Input length 264373 exceeds the maximum allowed input length of 262112 tokens.",
        ),
        (
            "llama.cpp",
            "the request exceeds the available context size. try increasing the context size or enable context shift",
        ),
        (
            "llama.cpp",
            "request (355724 tokens) exceeds the available context size (262144 tokens), try increasing it",
        ),
        (
            "llama.cpp",
            "the request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        ),
        ("llama-cpp-python", "Requested tokens (4226) exceed context window of 2048"),
        (
            "LM Studio",
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input",
        ),
        ("LM Studio", "tokens to keep from the initial prompt is greater than the context length"),
        (
            "LM Studio",
            "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.",
        ),
        (
            "LM Studio",
            "Trying to keep the first 10136 tokens when the context overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.",
        ),
        ("LM Studio", "Context size has been exceeded."),
        (
            "Ollama's cloud",
            "prompt too long; exceeded max context length by 540451 tokens (ref: 00ad71bb-fea0-4639-9dc9-3ad800192057)",
        ),
        ("Ollama", "prompt too long; exceeded context length"),
        ("Ollama", "the input length exceeds the context length"),
        ("Ollama", "input length exceeds maximum context length"),
        ("oMLX", "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens"),
        ("mlx-serve", "Prompt exceeds maximum context length"),
        ("ds4", "Prompt has 150,000 tokens, but the configured context size is 128,000 tokens"),
        ("ds4", "Prompt tokens (9000) exceeds context size (8192)"),
        (
            "text-generation-inference",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 `max_new_tokens`",
        ),
        (
            "text-generation-inference",
            "Input validation error: `inputs` must have less than 2048 tokens. Given: 2222",
        ),
        ("Groq", "Please reduce the length of the messages or completion."),
        (
            "Cerebras",
            "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        ),
        (
            "Mistral",
            "Prompt contains 1000172 tokens and 0 draft tokens, too large for model with 40960 maximum context length",
        ),
        (
            "Mistral",
            "Prompt contains 140000 tokens, too large for model with 131072 maximum context length",
        ),
        ("Mistral", "Prompt 262280 > 262144 maximum context length"),
        ("Perplexity", "The total length of all messages is too long."),
        ("Perplexity", "User input tokens exceeds 127072 tokens"),
        (
            "xAI",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        ),
        ("Fireworks", "The prompt is too long: 1000008, model maximum context length: 131071"),
        (
            "Cohere",
            "too many tokens: size limit exceeded by 713295 tokens. Try using shorter or fewer inputs. The limit for this model is 288000 tokens.",
        ),
        (
            "Cohere, old",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt.",
        ),
        (
            "Cohere, old",
            "too many tokens: the total number of tokens in the prompt cannot exceed 4081",
        ),
        ("Anthropic", "prompt is too long: 208310 tokens > 200000 maximum"),
        ("Anthropic", "Prompt is too long"),
        (
            "Anthropic",
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        (
            "Anthropic, relayed",
            "input length and max_tokens exceed context limit: 90402 + 116650 > 204648",
        ),
        (
            "Gemini",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        ),
        ("Gemini", "The input token count exceeds the maximum number of tokens allowed (1048576)."),
        ("Gemini", "Input token count exceeds the maximum number of tokens allowed 1048576."),
        (
            "Google's cloud",
            "Unable to submit request because the input token count is 1234567 but model only supports up to 1048576. Reduce the input token count and try again.",
        ),
        ("Bedrock", "Input is too long for requested model."),
        ("Bedrock", "Input is too long."),
        (
            "Bedrock, Nova",
            "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        ),
        (
            "Bedrock, Titan",
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279 ",
        ),
        ("Bedrock", "Too many input tokens."),
        (
            "Bedrock, Claude",
            "The model returned the following errors: prompt is too long: 286028 tokens > 200000 maximum",
        ),
        (
            "Bedrock, Llama",
            "The model returned the following errors: This model's maximum context length is 8192 tokens. Please reduce the length of the prompt",
        ),
        (
            "Bedrock, gpt-oss",
            "The model returned the following errors: {\"error\":{\"code\":\"validation_error\",\"message\":\"ErrorEvent { error: APIError { type: \\\"BadRequestError\\\", code: Some(400), message: \\\"Input length (195071) exceeds model's maximum context length (131072).\\\" } }\"}}",
        ),
        (
            "Moonshot",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 263162)",
        ),
        ("MiniMax", "invalid params, context window exceeds limit (2013)"),
        ("Z.ai", "Prompt exceeds max length"),
        (
            "DashScope",
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        ),
        ("SiliconFlow", "length of prompt_tokens (163280) must be less than max_seq_len (32768)."),
        ("GitHub Copilot", "prompt token count of 130000 exceeds the limit of 128000"),
        (
            "watsonx",
            "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model",
        ),
        ("a name", "Context length exceeded."),
        ("a name", "context_length_exceeded"),
        ("a name", "Maximum context length exceeded"),
        (
            "LiteLLM",
            "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - This model's maximum context length is 8192 tokens.",
        ),
        (
            "NVIDIA by LiteLLM",
            "litellm.BadRequestError: OpenAIException - {\"error\":{\"message\":\"You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 98304 tokens.\",\"type\":\"BadRequestError\",\"param\":\"input_tokens\",\"code\":400}}. Received Model Group=a\nAvailable Model Group Fallbacks=None",
        ),
    ];

    #[test]
    fn every_example_is_recognised_and_every_row_has_an_example() {
        for (server, text) in SEEN {
            assert!(any_fits(TEXTS, &normal(text)), "{server}: {text}");
        }
        for shape in TEXTS {
            let mut seen = SEEN.iter().map(|(_server, text)| normal(text));
            let is_seen = seen.any(|text| any_fits(&[shape], &text));
            assert!(is_seen, "no example of {shape}");
        }
    }

    #[test]
    fn other_refusals_with_similar_words_are_not_overflows() {
        for text in [
            "max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.",
            "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-opus",
            "`max_completion_tokens` must be less than or equal to `40960`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model",
            "max_tokens must be at least 1, got 0.",
            "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760, but got a string with length 20000000 instead.",
            "Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB.",
            "Request too large for model `llama` in organization `org` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.",
            "Invalid value: 'prompt is too long'. Supported values are: 'low', 'medium', and 'high'.",
            "'prompt is too long' is not one of ['user', 'assistant'] - 'messages.0.role'",
            "messages.0.content: This model's maximum context length is 8192 tokens",
            "Unsupported parameter: 'maximum_context_length' is not supported with this model.",
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
            "Your account has too many tokens in use: context length exceeded",
            "",
        ] {
            assert!(!any_fits(TEXTS, &normal(text)), "{text}");
        }
    }

    #[test]
    fn rows_are_in_the_form_in_which_they_are_compared() {
        for shape in TEXTS {
            assert_eq!(*shape, normal(shape), "quotes, capitals or blanks");
            assert!(!fits(shape, ""), "{shape} fits anything");
        }
    }
}
