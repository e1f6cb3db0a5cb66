//! How long a poll takes at most, whatever bytes a provider sends: other requests wait for that long.
//!
//! Engine and provider are the real ones and the provider's server is on a loopback socket; the store is in
//! memory. All of it shares one thread with a task that always wants its turn. What the thread's CPU clock
//! says between two turns of that task is what others were given in between: at least the longest of their
//! polls. What is done on threads of its own is not in it. Noise only adds, so that a case that takes longer
//! than others has two more tries, and the least counts.
//!
//! The promise is 10 ms of an optimized build. This asks for it, and prints the longest polls:
//!
//! ```text
//! cargo nextest run --release -p holdfast-engine --no-capture polls
//! ```
//!
//! A build without optimizations is some six times as slow (27 and 5 ms, measured), and is held to as much
//! more: it finds what grows out of all proportion. It sends less of what is only much.
//!
//! What is sent is a function of a seed, which a failure names; `HOLDFAST_POLLS_SEED` repeats it.

mod attack;
mod saying;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use holdfast_domain::ports::Provider;
use holdfast_engine::{ReplyBody, StreamItem};
use holdfast_net::BaseUrl;
use holdfast_providers::kinds::{
    Anthropic, AzureOpenAi, Bedrock, Gemini, HttpOptions, Kind, OpenAi, Region,
};
use holdfast_providers::{HttpProvider, LateSystem, ServerOptions};
use holdfast_testkit::Dice;
use holdfast_wire::chat::upstream::BoundField;
use rustix::time::{ClockId, clock_gettime};

use self::attack::{Attack, streams, wholes};
use self::saying::ApiKind;
use crate::world::{World, setup};

const POLL_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 60 } else { 10 });
/// What is so short is not tried again.
const NOISELESS: Duration = Duration::from_millis(if cfg!(debug_assertions) { 40 } else { 3 });
const TRIES: usize = 3;

/// CPU time of this thread.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// What others were given at once, at most, since it was last asked.
#[derive(Clone, Default)]
struct LongestPoll(Arc<Mutex<Duration>>);

impl LongestPoll {
    /// Always wants its turn.
    async fn watch(self) {
        let mut last = cpu();
        std::future::poll_fn(|context| {
            let given = cpu().saturating_sub(last);
            let mut longest = self.0.lock().unwrap();
            *longest = longest.max(given);
            drop(longest);
            context.waker().wake_by_ref();
            last = cpu();
            Poll::<()>::Pending
        })
        .await;
    }

    fn take(&self) -> Duration {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Answers every request with the newest attack.
struct Upstream {
    base_url: String,
    next: Arc<Mutex<Vec<u8>>>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let next = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::clone(&next);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = Arc::clone(&answer);
                // Whoever hangs up in the middle does what the test is about.
                std::thread::spawn(move || drop(serve(stream.unwrap(), &answer)));
            }
        });
        Self { base_url, next }
    }

    fn send(&self, attack: &Attack) {
        let mut answer = format!(
            "HTTP/1.1 {} x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
            attack.status
        )
        .into_bytes();
        for chunk in attack.body.chunks(attack.chunk) {
            answer.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            answer.extend(chunk);
            answer.extend(b"\r\n");
        }
        answer.extend(b"0\r\n\r\n");
        *self.next.lock().unwrap() = answer;
    }
}

/// Reads what is left of a request and answers it: its last bytes are those of a JSON object.
fn serve(mut stream: TcpStream, answer: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let (mut request, mut piece) = (Vec::new(), [0; 4_096]);
    while !request.ends_with(b"}") {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        request.extend(&piece[..read]);
    }
    let answer = answer.lock().unwrap().clone();
    stream.write_all(&answer)
}

impl ApiKind {
    fn provider(self, base_url: &str) -> Arc<dyn Provider> {
        let server = ServerOptions::new(BaseUrl::try_from(base_url).unwrap());
        let dialect = OpenAi::new(BoundField::MaxCompletionTokens);
        let kind = match self {
            Self::OpenAi => Kind::OpenAi(dialect),
            Self::Azure => Kind::AzureOpenAi(AzureOpenAi { dialect, api_version: None }),
            Self::Anthropic => {
                Kind::Anthropic(Anthropic { sampling: false, late_system: LateSystem::Fold })
            }
            Self::Gemini => {
                Kind::Gemini(Gemini { skip_signatures: false, late_system: LateSystem::Fold })
            }
            Self::Bedrock => {
                let region = Region::try_from("eu-central-1").unwrap();
                Kind::Bedrock(Bedrock { region, keys: None, late_system: LateSystem::Fold })
            }
        };
        Arc::new(HttpProvider::new(HttpOptions { server, kind }).unwrap())
    }

    fn request(self, stream: bool) -> String {
        let more = if self.has_sources() { r#","logprobs":true,"top_logprobs":1"# } else { "" };
        format!(
            r#"{{"model":"holdfast/sample","messages":[{{"role":"user","content":"hello"}}],"stream":{stream}{more}}}"#
        )
    }
}

/// Asks, and reads all that is told; why there was no answer.
async fn ask(world: &World, key: u64, body: &str) -> Result<(), String> {
    match world.ask(key, body).await.outcome {
        Ok(ReplyBody::Completed(_)) => Ok(()),
        Ok(ReplyBody::Streamed(mut stream)) => loop {
            match stream.next().await {
                Some(StreamItem::Event(_)) => {}
                Some(StreamItem::Broken(broken)) => return Err(format!("{broken:?}")),
                None => return Ok(()),
            }
        },
        Ok(refused @ ReplyBody::Refused(..)) => Err(format!("{refused:?}")),
        Err(failure) => Err(format!("{failure:?}")),
    }
}

/// One kind of provider and everything that it sends; the longest poll of each.
async fn longest_polls(kind: ApiKind, seed: u64) -> Vec<(Duration, String)> {
    let upstream = Upstream::start();
    let world =
        setup().funds(1 << 40).provider("one", kind.provider(&upstream.base_url)).start().await;
    let longest = LongestPoll::default();
    let mut watching = tokio::task::JoinSet::new();
    watching.spawn(longest.clone().watch());
    let mut dice = Dice::new(seed);
    let (mut figures, mut key) = (Vec::new(), 0);
    let streams = streams(kind, &mut dice).into_iter().map(|attack| (true, attack));
    let wholes = wholes(kind, &mut dice);
    let streams: Vec<_> = streams.collect();
    let wanted = |stream| wholes.iter().map(move |attack| (stream, attack));
    let all = streams.iter().map(|(stream, attack)| (*stream, attack));
    for (stream, attack) in all.chain(wanted(false)).chain(wanted(true)) {
        upstream.send(attack);
        let (asked, mut least) = (kind.request(stream), Duration::MAX);
        for _try in 0..TRIES {
            key += 1;
            longest.take();
            let told = ask(&world, key, &asked).await;
            let as_it_should = !attack.is_sound || told.is_ok();
            assert!(as_it_should, "seed {seed}: {kind:?}, {}: {told:?}", attack.name);
            least = least.min(longest.take());
            if least <= NOISELESS {
                break;
            }
        }
        let wanted = if stream { "streamed" } else { "whole" };
        figures.push((least, format!("{kind:?}, {wanted}: {}", attack.name)));
    }
    figures
}

#[expect(clippy::print_stderr, reason = "figures, for whoever asks for them")]
#[expect(clippy::disallowed_methods, reason = "repeats a test, and configures nothing")]
fn check(kind: ApiKind) {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let seed = std::env::var("HOLDFAST_POLLS_SEED").ok();
    let seed = seed.map_or(u64::from(now.subsec_nanos()), |seed| seed.parse().unwrap());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build();
    let mut figures = runtime.unwrap().block_on(longest_polls(kind, seed));
    figures.sort();
    let figures = figures.iter().rev();
    eprintln!("seed {seed}");
    for (longest, case) in figures.clone().take(8) {
        eprintln!("{longest:>12?}  {case}");
    }
    let too_long: Vec<_> = figures.filter(|(longest, _)| *longest > POLL_MAX).collect();
    assert!(too_long.is_empty(), "seed {seed}: {too_long:#?}");
}

#[test]
fn no_poll_takes_long_whatever_openai_sends() {
    check(ApiKind::OpenAi);
}

#[test]
fn no_poll_takes_long_whatever_azure_sends() {
    check(ApiKind::Azure);
}

#[test]
fn no_poll_takes_long_whatever_anthropic_sends() {
    check(ApiKind::Anthropic);
}

#[test]
fn no_poll_takes_long_whatever_gemini_sends() {
    check(ApiKind::Gemini);
}

#[test]
fn no_poll_takes_long_whatever_bedrock_sends() {
    check(ApiKind::Bedrock);
}
