//! Cost of a chunk log, and proof that every follower, however far behind, gets the same text.

use holdfast_domain::answer::{ChoiceDelta, Delta, ToolCallDelta};
use holdfast_domain::secret::CredentialSecret;
use holdfast_domain::{OperationId, Timestamp};
use holdfast_testkit::sample;
use holdfast_wire::chat::chunk::Chunks;

use super::*;

/// Text that each of the tests sends, in pieces.
const TEXT: usize = 64 << 10;

struct ChunkLogFixture {
    chunk_log: ChunkLog,
    chunks: Chunks,
}

impl ChunkLogFixture {
    fn new() -> Self {
        let model = sample::model();
        let id = CredentialId::from_u128(1);
        let bearer = Bearer { id, secret: CredentialSecret::new([1; 32]) };
        let chunk_log = ChunkLog::new(&bearer, model.clone());
        let id = OperationId::from_u128(1);
        Self { chunk_log, chunks: Chunks::new(id, Timestamp::from_micros(0), model.as_str()) }
    }

    fn append_choice(&mut self, choice: ChoiceDelta) {
        let delta = Delta::from(vec![choice]);
        let pieces = self.chunks.delta(&delta);
        self.chunk_log.append(self.chunks.envelope(), pieces);
    }
}

fn content(index: u32, text: &str) -> ChoiceDelta {
    ChoiceDelta { index, content: Some(text.to_owned()), ..ChoiceDelta::default() }
}

/// Takes all that the follower has not had, and joins the texts of `member`.
async fn rest(follower: &mut Follower, member: &str) -> (String, usize) {
    let (mut text, mut chunks) = (String::new(), 0);
    loop {
        let events = follower.more().await;
        if events.is_empty() {
            return (text, chunks);
        }
        for event in events {
            let event = String::from_utf8(event.to_vec()).unwrap();
            let before = format!("\"{member}\":\"");
            let seen = event.split_once(&before).and_then(|(_, seen)| seen.split_once('"'));
            text.push_str(seen.map_or("", |(seen, _)| seen));
            chunks += 1;
        }
    }
}

#[tokio::test]
async fn text_of_several_stretches_is_sent_as_one() {
    let mut telling = ChunkLogFixture::new();
    let mut early = telling.chunk_log.follow(false);
    let pieces: Vec<_> =
        (0..5_000).map(|n| format!("{n}: {}\n", "x".repeat(700 + n % 97))).collect();
    for (n, piece) in pieces.iter().enumerate() {
        telling.append_choice(content(0, piece));
        if n % 1_000 == 0 {
            assert!(!early.more().await.is_empty());
        }
    }
    telling.chunk_log.close();
    let (text, _chunks) = rest(&mut telling.chunk_log.follow(false), "content").await;
    assert_eq!(text, pieces.concat().replace('\n', "\\n"));
}

#[tokio::test]
async fn a_track_costs_at_most_three_times_its_text_for_pieces_of_any_size() {
    for bytes in [1, 2, 3, 7, 15, 16, 31, 64, 100, 256, 1_000, 1_024, 4_096] {
        for choices in [1, 2, 9] {
            let mut telling = ChunkLogFixture::new();
            let (mut early, mut late) =
                (telling.chunk_log.follow(true), telling.chunk_log.follow(false));
            let piece = "x".repeat(bytes);
            let mut written = 0;
            for n in 0.. {
                if written >= TEXT {
                    break;
                }
                telling.append_choice(content(n % choices, &piece));
                written += bytes;
                if n % 3 == 0 {
                    drop(early.more().await);
                }
            }
            let cost = telling.chunk_log.cost();
            assert!(cost <= 3 * written, "{bytes} bytes, {choices} choices: {cost} for {written}");
            telling.chunk_log.close();
            let (text, chunks) = rest(&mut late, "content").await;
            assert_eq!(text.len(), written, "{bytes} bytes, {choices} choices");
            let pieces = written.div_ceil(bytes);
            assert!(chunks <= pieces + 2 * 9, "{chunks} chunks for {pieces} pieces");
        }
    }
}

#[tokio::test]
async fn every_follower_gets_the_same_text_however_far_behind() {
    let mut telling = ChunkLogFixture::new();
    let mut followers: Vec<_> = (0..8).map(|_| telling.chunk_log.follow(false)).collect();
    let mut seen = vec![String::new(); followers.len()];
    let mut written = String::new();
    for n in 0..3_000_usize {
        let piece = format!("<{n}é>");
        written.push_str(&piece);
        let call = ToolCallDelta {
            name: (n == 0).then(|| "find".to_owned()),
            input: Some(piece),
            ..ToolCallDelta::default()
        };
        telling.append_choice(ChoiceDelta { tool_calls: vec![call], ..ChoiceDelta::default() });
        for (at, follower) in followers.iter_mut().enumerate() {
            // The first follows closely, each other one is further behind, the last waits for the end.
            if at + 1 < seen.len() && n % (at * at * 10 + 1) == 0 {
                for event in follower.more().await {
                    seen[at].push_str(str::from_utf8(&event).unwrap());
                }
            }
        }
    }
    telling.chunk_log.close();
    for (mut follower, seen) in followers.into_iter().zip(seen) {
        let mut all = seen;
        loop {
            let events = follower.more().await;
            if events.is_empty() {
                break;
            }
            events.iter().for_each(|event| all.push_str(str::from_utf8(event).unwrap()));
        }
        let pieces = all.split(r#""arguments":""#).skip(1);
        let text: String = pieces.map(|piece| piece.split_once('"').unwrap().0).collect();
        assert!(text == written, "{} of {} bytes", text.len(), written.len());
        assert_eq!(all.matches(r#""name":"find""#).count(), 1);
        assert_eq!(all.matches(r#""role":"assistant""#).count(), 1);
        assert_eq!(all.matches("data: ").count(), all.matches("\n\n").count());
    }
}
