//! The clients that are driven, and what the document says of each beside its errors.

use crate::clients::{NODE, NODE_FRAMEWORKS, PYTHON, PYTHON_FRAMEWORKS, Sdk};
use crate::faults::Fault;

/// A cell of what there is not.
pub(crate) const NONE: &str = "–";

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    /// Name of the row.
    pub(crate) name: &'static str,
    /// Libraries, and the script that uses them.
    pub(crate) sdk: Sdk,
    pub(crate) script: &'static str,
    /// Cells: a key for one call, keys by themselves, and what to set.
    pub(crate) cells: [&'static str; 3],
    /// Ways to ask.
    pub(crate) hows: &'static [&'static str],
    /// Those of them that send several requests for one call, for which one key does not do.
    pub(crate) loops: &'static [&'static str],
    /// Faults that it fails at without a helper, though it asks again with one.
    pub(crate) bare: &'static [Fault],
    /// Settings of the last cell.
    pub(crate) settings: &'static [Setting],
}

/// A setting by which a model may take its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A longer wait for each answer.
    Timeout,
    /// More tries.
    Retries,
}

impl Setting {
    /// A part of its name, whatever the client calls it.
    pub(crate) fn part(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Retries => "retries",
        }
    }
}

const COMMON: &[&str] = &["whole", "stream", "tools", "structured"];
const ASYNCHRONOUS_TOO: &[&str] = &["whole", "asynchronous", "stream", "tools", "structured"];
const BOTH: &[Setting] = &[Setting::Timeout, Setting::Retries];
const RETRIES: &[Setting] = &[Setting::Retries];

impl Client {
    pub(crate) const fn new(
        name: &'static str,
        sdk: Sdk,
        script: &'static str,
        cells: [&'static str; 3],
    ) -> Self {
        Self { name, sdk, script, cells, hows: COMMON, loops: &[], bare: &[], settings: &[] }
    }

    /// Maker of its keys where there is no sidecar: `helper` or `option`.
    pub(crate) fn keys(&self) -> &'static str {
        if self.cells[1] == NONE { "option" } else { "helper" }
    }
}

pub(crate) const OPENAI: Client = Client {
    settings: BOTH,
    ..Client::new(
        "openai-python",
        PYTHON.with("frameworks"),
        "with_openai",
        [
            "`extra_headers={\"Idempotency-Key\": str(uuid4())}`",
            "`OpenAI(http_client=http)`",
            "`timeout`, `max_retries`",
        ],
    )
};

pub(crate) const ASYNC_OPENAI: Client = Client {
    settings: BOTH,
    ..Client::new(
        "openai-python, asynchronous",
        PYTHON.with("frameworks"),
        "with_async_openai",
        ["the same", "`AsyncOpenAI(http_client=ahttp)`", "`timeout`, `max_retries`"],
    )
};

pub(crate) const NODE_OPENAI: Client = Client {
    bare: &[Fault::Cut],
    settings: BOTH,
    ..Client::new(
        "openai-node",
        NODE.with("frameworks"),
        "with_openai",
        [
            "`create(body, {headers: {'Idempotency-Key': crypto.randomUUID()}})`",
            "`new OpenAI({fetch: keyed})`",
            "`timeout`, `maxRetries`",
        ],
    )
};

const LANGCHAIN: Client = Client {
    hows: ASYNCHRONOUS_TOO,
    settings: BOTH,
    ..Client::new(
        "LangChain, Python",
        PYTHON_FRAMEWORKS,
        "with_langchain",
        [
            "`llm.invoke(x, extra_headers={…})`",
            "`ChatOpenAI(http_client=http, http_async_client=ahttp)`",
            "`timeout`, `max_retries`",
        ],
    )
};

const LLAMA_INDEX: Client = Client {
    hows: ASYNCHRONOUS_TOO,
    settings: RETRIES,
    ..Client::new(
        "LlamaIndex, OpenAILike",
        PYTHON_FRAMEWORKS,
        "with_llama_index",
        [
            "`llm.chat(m, extra_headers={…})`",
            "`http_client=http, async_http_client=ahttp`",
            "`max_retries`",
        ],
    )
};

const PYDANTIC_AI: Client = Client {
    loops: &["tools"],
    settings: RETRIES,
    ..Client::new(
        "pydantic-ai",
        PYTHON_FRAMEWORKS,
        "with_pydantic_ai",
        [
            "`run(model_settings={\"extra_headers\": …})`, without tools",
            "`OpenAIProvider(http_client=ahttp)`",
            "`OpenAIProvider(openai_client=AsyncOpenAI(max_retries=…, http_client=ahttp))`",
        ],
    )
};

const INSTRUCTOR: Client = Client {
    hows: &["whole", "stream", "structured", "structured_stream", "asked_again"],
    loops: &["asked_again"],
    settings: RETRIES,
    ..Client::new(
        "instructor",
        PYTHON_FRAMEWORKS,
        "with_instructor",
        [
            "`create(…, extra_headers=…)`, as long as it does not repeat the call",
            "`from_openai(OpenAI(http_client=http))`",
            "`max_retries` of `OpenAI`",
        ],
    )
};

const LITELLM: Client = Client {
    settings: RETRIES,
    ..Client::new(
        "LiteLLM, as a library",
        PYTHON_FRAMEWORKS,
        "with_litellm",
        ["`completion(…, extra_headers={…})`", "`litellm.client_session = http`", "`max_retries`"],
    )
};

const LLM: Client = Client {
    loops: &["tools"],
    ..Client::new(
        "`llm`",
        PYTHON_FRAMEWORKS,
        "with_llm",
        [
            "`headers:` of `extra-openai-models.yaml`, which are fixed",
            NONE,
            "the sidecar's URL as `api_base`",
        ],
    )
};

const CURL: Client = Client {
    settings: RETRIES,
    ..Client::new(
        "curl",
        PYTHON_FRAMEWORKS,
        "with_curl",
        [
            "`-H \"Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)\"`",
            NONE,
            "more retries: `--retry N --retry-all-errors`; a key in a file",
        ],
    )
};

const LANGCHAIN_JS: Client = Client {
    settings: &[Setting::Timeout],
    ..Client::new(
        "LangChain, JavaScript",
        NODE_FRAMEWORKS,
        "with_langchain",
        [
            "`invoke(x, {options: {headers}})`; `stream(x, {headers})`",
            "`new ChatOpenAI({configuration: {baseURL, fetch: keyed}})`",
            "`timeout`",
        ],
    )
};

const AI_SDK: Client = Client {
    loops: &["tools"],
    settings: RETRIES,
    ..Client::new(
        "AI SDK",
        NODE_FRAMEWORKS,
        "with_ai_sdk",
        [
            "`generateText({headers})` for a single step",
            "`createOpenAICompatible({…, fetch: keyed})`",
            "`maxRetries` of the call",
        ],
    )
};

pub(crate) const OF_PYTHON: &[Client] =
    &[OPENAI, ASYNC_OPENAI, LANGCHAIN, LLAMA_INDEX, PYDANTIC_AI, INSTRUCTOR, LITELLM, LLM, CURL];

pub(crate) const OF_NODE: &[Client] = &[NODE_OPENAI, LANGCHAIN_JS, AI_SDK];
