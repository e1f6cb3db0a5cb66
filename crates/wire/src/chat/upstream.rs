//! OpenAI's dialect towards a provider, as every compatible server takes it: the request that is sent,
//! and the answer that is read leniently but never guessed. What a status proves is not decided here.

mod answer;
mod body;
mod calls;
mod charge;
mod choice;
mod chunk;
mod failure;
mod moderation;
mod passthrough;
mod usage;

pub use holdfast_domain::ports::UnreadableReason;

pub use self::answer::{Completion, read_completion};
pub use self::body::{BoundField, render_request};
pub use self::calls::CALLS_MAX;
pub use self::charge::read_charge;
pub(super) use self::choice::read as read_choice;
pub use self::chunk::{CHOICES_MAX, ChunkReader};
pub use self::failure::{UpstreamError, read_error};
