//! What hostile requests cost in memory: after the first few of each sort, none costs any more.

use holdfast_tests::request_key;

use crate::hostile::{CANARY, Want, World};

const BODY_BYTES: usize = 1 << 20;
const WARM_UP: usize = 2;
/// So many make a window; what leaks makes each window larger than the one before.
const ROUNDS: usize = 6;
/// The allocator keeps more for each thread until every thread has had its share: then it stays.
const WINDOWS_MAX: usize = 6;
/// What the allocator may keep for reasons of its own: one body a round that leaked would be more.
const GROWTH_MAX_KB: u64 = 16 * 1_024;
/// Above what it had at rest, at the worst moment: so much, and more for each body that is read at once.
const PEAK_MAX_KB: u64 = 64 * 1_024;
const PEAK_OF_ONE_MAX_KB: u64 = 32 * 1_024;

/// A line of the kernel's account of the process, in kB.
fn kilobytes(world: &World, name: &str) -> u64 {
    let status = format!("/proc/{}/status", world.gateway.process());
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Each is refused; some announce more than they send.
fn heavy(world: &World) -> Vec<Vec<u8>> {
    let post = |body: &str| world.with_body(&request_key(), body).into_bytes();
    let filled = |value: String| post(&format!("{{\"{CANARY}\":{value}}}"));
    let n = BODY_BYTES - 100;
    let lines: String = (0..100_000).map(|at| format!("X-{at}: y\r\n")).collect();
    let members: String = (0..n / 12).map(|at| format!("\"{at:07}\":0,")).collect();
    let head = world.head(&request_key());
    vec![
        filled(format!("[{}0]", "0,".repeat(n / 2 - 1))),
        filled(format!("[{}0]", "[],".repeat(n / 3 - 1))),
        filled(format!("[{}0]", "[[[[0]]]],".repeat(n / 10 - 1))),
        filled(format!("[{}0]", "{\"\":0},".repeat(n / 7 - 1))),
        filled(format!("{{{members}\"x\":0}}")),
        filled("[".repeat(n)),
        filled("7".repeat(n)),
        filled(format!("\"{}\"", "\\u0041".repeat(n / 6))),
        filled(format!("\"{}\"", "x".repeat(n))),
        post(&"x".repeat(4 << 20)),
        format!("{head}{lines}\r\n").into_bytes(),
        format!("{head}X: {}\r\n\r\n", "y".repeat(1_000_000)).into_bytes(),
        format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
            "1\r\n \r\n".repeat(200_000)
        )
        .into_bytes(),
        [format!("{head}Content-Length: 2000\r\n\r\n").as_bytes(), &[0xff; 2_000]].concat(),
    ]
}

fn round(world: &World, heavy: &[Vec<u8>]) {
    std::thread::scope(|scope| {
        for bytes in heavy {
            scope.spawn(move || {
                let answers = world.answers(bytes);
                assert!(answers.iter().all(|answer| (400..500).contains(&answer.status)));
            });
        }
    });
}

#[test]
fn memory_stays_flat_under_heavy_refusals() {
    let mut world =
        World::new(|config| config.set("limits", "body_bytes", &BODY_BYTES.to_string()));
    let key = request_key();
    let good = world.good(&key);
    world.check("warm", &key, good.as_bytes(), &Want::Served);
    let heavy = heavy(&world);
    let rounds = |n: usize| {
        let least = (0..n).map(|_| {
            round(&world, &heavy);
            kilobytes(&world, "VmRSS:")
        });
        least.min().unwrap()
    };
    let at_rest = kilobytes(&world, "VmRSS:");
    rounds(WARM_UP);
    let mut windows = vec![rounds(ROUNDS)];
    let has_settled = (0..WINDOWS_MAX).any(|_| {
        let (before, after) = (windows[windows.len() - 1], rounds(ROUNDS));
        windows.push(after);
        after.saturating_sub(before) <= GROWTH_MAX_KB
    });
    let peak = kilobytes(&world, "VmHWM:");
    let figures = format!("kB: {at_rest}, then {windows:?}, {peak} at most");
    assert!(has_settled, "{figures}");
    let at_once = std::thread::available_parallelism().map_or(1, |it| it.get()).min(heavy.len());
    let peak_max = PEAK_MAX_KB + PEAK_OF_ONE_MAX_KB * u64::try_from(at_once).unwrap();
    assert!(peak.saturating_sub(at_rest) <= peak_max, "{figures}");
    world.check_unharmed();
}
