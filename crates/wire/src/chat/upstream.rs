//! OpenAI's dialect towards a provider, as every compatible server takes it: the request that is sent,
//! and the answer that is read leniently but never guessed. What a status proves is not decided here.

mod answer;
mod arguments;
mod body;
mod call_part;
mod calls;
mod charge;
mod choice;
mod chunk;
mod context;
mod failure;
mod finish;
mod members;
mod moderation;
mod operation_end;
mod passthrough;
mod usage;

pub use holdfast_domain::ports::UnreadableReason;

pub use self::answer::{Completion, read_completion, read_completion_in};
pub use self::arguments::JsonProgress;
pub use self::body::{BoundField, render_request};
pub use self::calls::CALLS_MAX;
pub use self::charge::read_charge;
pub use self::chunk::{CHOICES_MAX, ChunkReader};
pub use self::context::AnswerContext;
pub use self::failure::{UpstreamError, read_error};
pub use self::finish::{BadFinishWord, FinishWords, WORDS as FINISH_WORDS};
pub use self::operation_end::{OperationEnd, read_operation_end};
pub(super) use self::passthrough::logprobs;
pub use self::usage::reported_count;
