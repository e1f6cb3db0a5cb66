//! All entries of a run, as small as they can be kept: of a text its bytes and a byte or two for each of its
//! pieces, of any other chunk its members. Followers that are behind read from here, in coarser pieces. Not the
//! form of a chunk: the wire's [`Envelope`] renders it.
//!
//! An entry is a number and its payload. The number has the length in its upper bits and the lane in the three
//! lowest: 0 to 5 are the first six lanes, 6 is any other one, whose number follows, 7 a whole chunk. It is written
//! seven bits to a byte, so that a piece of up to 15 bytes costs one byte more than itself.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use holdfast_wire::chat::chunk::{ChoiceText, Envelope};

const LONG_LANE: usize = 6;
const CHUNK: usize = 7;
const TAG_BITS: u32 = 3;
const NUMBER_BITS: u32 = 7;
/// Bytes of text of one lane that are joined into one chunk for a follower who is behind.
const TEXT_MAX: usize = 4_096;
/// Bytes by which the log grows at least.
const GROWTH_MIN: usize = 512;
/// Bytes of a stretch, after which a new buffer begins: a buffer that grows is copied, under
/// the lock that followers wait for.
const STRETCH: usize = 1 << 20;

/// Log of all entries of a run, in the order in which they were sent.
#[derive(Default)]
pub(super) struct CompactLog {
    /// Newest stretch, and its offset in the whole log.
    entries: Vec<u8>,
    begin: usize,
    /// Full stretches, each with its offset; they never change again.
    past: Vec<(usize, Vec<u8>)>,
    /// Texts by lane number, in the order in which they began.
    lanes: Vec<ChoiceText>,
    known: BTreeMap<ChoiceText, usize>,
}

/// Copy of consecutive entries, with the lanes that they refer to.
pub(super) struct Excerpt {
    entries: Vec<u8>,
    lanes: Vec<ChoiceText>,
}

/// Entry of the log, decoded.
enum LogEntry<'a> {
    /// Piece of the text of this lane.
    Text(usize, &'a [u8]),
    /// Members of a whole chunk, as JSON text.
    Chunk(&'a [u8]),
}

impl CompactLog {
    /// Offset of the next entry: the length of the log.
    pub(super) const fn end(&self) -> usize {
        self.begin.saturating_add(self.entries.len())
    }

    /// Adds a piece of a text, and opens a lane for a text that is new.
    pub(super) fn add_text(&mut self, lane: ChoiceText, text: &str) {
        let next = self.lanes.len();
        let at = *self.known.entry(lane).or_insert(next);
        if at == next {
            self.lanes.push(lane);
        }
        self.make_room(text.len());
        // Nearly all answers have one or two texts: their lane costs no byte of its own.
        self.push_number((text.len() << TAG_BITS) | at.min(LONG_LANE));
        if at >= LONG_LANE {
            self.push_number(at);
        }
        self.entries.extend_from_slice(text.as_bytes());
    }

    /// Adds a chunk that is more than a piece of one text, by its rendered members.
    pub(super) fn add_chunk(&mut self, members: &[u8]) {
        self.make_room(members.len());
        self.push_number((members.len() << TAG_BITS) | CHUNK);
        self.entries.extend_from_slice(members);
    }

    /// Copies entries between two offsets: at least one, at most one more than `bytes_max` holds,
    /// and all of one stretch. Followers come again for the rest.
    pub(super) fn excerpt(&self, from: usize, to: usize, bytes_max: usize) -> Excerpt {
        let stretch = self.past.partition_point(|(begin, _entries)| *begin <= from);
        let stretch = stretch.checked_sub(1).and_then(|at| self.past.get(at));
        let (begin, entries) = match stretch {
            Some((begin, entries)) if from < self.begin => (*begin, entries),
            Some(_) | None => (self.begin, &self.entries),
        };
        let all = entries.get(from.saturating_sub(begin)..).unwrap_or_default();
        let all = all.get(..to.saturating_sub(from)).unwrap_or(all);
        let mut rest = all;
        // Whole entries only: a cut in a piece of text could fall into a character.
        while all.len() - rest.len() < bytes_max && take(&mut rest).is_some() {}
        let taken = all.get(..all.len() - rest.len()).unwrap_or_default();
        Excerpt { entries: taken.to_vec(), lanes: self.lanes.clone() }
    }

    /// Makes room by quarters of the stretch: a buffer that doubles would hold as much empty space
    /// as text.
    fn make_room(&mut self, bytes: usize) {
        if self.entries.len() >= STRETCH {
            let next = self.end();
            // Set aside, not copied: followers who are behind read from both.
            self.past.push((self.begin, std::mem::take(&mut self.entries)));
            self.begin = next;
        }
        let needed = bytes.saturating_add(2 * size_of::<u64>());
        if self.entries.capacity() - self.entries.len() < needed {
            let growth = (self.entries.len() / 4).max(GROWTH_MIN);
            self.entries.reserve_exact(needed.max(growth));
        }
    }

    fn push_number(&mut self, number: usize) {
        let mut rest = number;
        loop {
            let [low, ..] = rest.to_le_bytes();
            rest >>= NUMBER_BITS;
            let more = if rest == 0 { 0 } else { 0x80 };
            self.entries.push((low & 0x7f) | more);
            if rest == 0 {
                return;
            }
        }
    }

    /// Bytes of memory that the log holds.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let lane = size_of::<ChoiceText>();
        let past: usize = self.past.iter().map(|(_begin, entries)| entries.capacity()).sum();
        past + self.entries.capacity() + self.lanes.capacity() * lane + self.known.len() * 2 * lane
    }
}

impl Excerpt {
    /// Length in bytes, by which the follower's offset advances.
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Renders the entries as chunks; consecutive pieces of one text are joined, up to `TEXT_MAX`.
    pub(super) fn render(&self, envelope: &Envelope, include_usage: bool) -> VecDeque<Bytes> {
        let mut events = VecDeque::new();
        let mut gathered = TextBuffer { lane: None, text: Vec::new() };
        let mut rest = &*self.entries;
        while let Some(entry) = take(&mut rest) {
            let (lane, bytes) = match entry {
                LogEntry::Text(at, bytes) => (self.lanes.get(at).copied(), bytes),
                LogEntry::Chunk(members) => (None, members),
            };
            // Only neighbours are joined: the order in which texts of several choices were sent is kept.
            let goes_on = lane.is_some() && gathered.lane == lane;
            if !goes_on || gathered.text.len().saturating_add(bytes.len()) > TEXT_MAX {
                events.extend(gathered.flush(envelope, include_usage));
            }
            if lane.is_some() {
                gathered.lane = lane;
                gathered.text.extend_from_slice(bytes);
            } else {
                events.push_back(envelope.chunk(bytes).bytes(include_usage));
            }
        }
        events.extend(gathered.flush(envelope, include_usage));
        events
    }
}

/// Buffer of pieces of one text that become one chunk.
struct TextBuffer {
    lane: Option<ChoiceText>,
    text: Vec<u8>,
}

impl TextBuffer {
    fn flush(&mut self, envelope: &Envelope, include_usage: bool) -> Option<Bytes> {
        let lane = self.lane.take()?;
        // Whole pieces of text: no byte is lost.
        let frame = envelope.text(lane, &String::from_utf8_lossy(&self.text));
        self.text.clear();
        Some(frame.bytes(include_usage))
    }
}

/// Takes the first entry off; `None` at the end, or if an entry is cut.
fn take<'a>(entries: &mut &'a [u8]) -> Option<LogEntry<'a>> {
    let mut rest = *entries;
    let number = take_number(&mut rest)?;
    let tag = number & CHUNK;
    let at = if tag == LONG_LANE { take_number(&mut rest)? } else { tag };
    let (bytes, rest) = rest.split_at_checked(number >> TAG_BITS)?;
    *entries = rest;
    Some(if tag == CHUNK { LogEntry::Chunk(bytes) } else { LogEntry::Text(at, bytes) })
}

fn take_number(entries: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, rest) = entries.split_first()?;
        *entries = rest;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
