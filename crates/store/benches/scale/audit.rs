//! A whole audit, part by part.

use std::fs;
use std::time::{Duration, Instant};

use holdfast_store::Store;
use holdfast_store::verify::{AuditOptions, Verification};

use crate::say;

/// Most memory, in MB, of an audit of any book: it took 39 on SQLite, and does not grow with the book.
const MEMORY_MAX_MB: u64 = 80;

/// Processor time of this process, in hundredths of a second, and the most memory that it had, in MB.
fn costs() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name in brackets may have blanks.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    (ticks(11) + ticks(12), peak / 1024)
}

/// Audits the book; what it finds, since the book is in order.
pub(crate) async fn verify(store: &Store) -> Vec<String> {
    // The peak of what was before says nothing about the audit.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let (begun, (before, _)) = (Instant::now(), costs());
    let options = AuditOptions::keeping(Duration::MAX);
    let (mut found, mut position) = (Verification::default(), None);
    let (mut part, mut since, mut longest) = ("", Instant::now(), Duration::ZERO);
    say("audit: time of each part, its longest page");
    loop {
        let page_begun = Instant::now();
        let page = store.verify_page(options.clone(), position).await.unwrap();
        if part != page.progress.part {
            (part, since, longest) = (page.progress.part, page_begun, Duration::ZERO);
        }
        longest = longest.max(page_begun.elapsed());
        let is_last = page.next.as_ref().is_none_or(|next| !next.to_string().starts_with(part));
        if is_last {
            say(&format!("  {part}: {:.1?}, {longest:.1?}", since.elapsed()));
        }
        found.add(page.found);
        position = match page.next {
            Some(next) => Some(next),
            None => break,
        };
    }
    let (after, peak) = costs();
    let spent = after - before;
    say(&format!(
        "  all: {:.1?}, {}.{:02} s of processor time, {peak} MB at most",
        begun.elapsed(),
        spent / 100,
        spent % 100
    ));
    let first = found.mismatches.iter().take(5).map(ToString::to_string).collect::<Vec<_>>();
    let mut wrong = Vec::new();
    if !found.is_clean() {
        wrong.push(format!("a book in order: {first:#?}"));
    }
    if peak > MEMORY_MAX_MB {
        wrong.push(format!("an audit in {MEMORY_MAX_MB} MB: it had {peak}"));
    }
    wrong
}
