//! Usage of processes and of the machine, as the kernel says in /proc.

use std::fs;

use crate::numbers::permille;

/// Clock ticks of a second, as every Linux that Rust runs on has them for user space.
const TICKS: u64 = 100;
const NANOS_PER_TICK: u64 = 1_000_000_000 / TICKS;

/// Usage of a process so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    pub(crate) cpu_nanos: u64,
    pub(crate) written: u64,
    pub(crate) resident_kib: u64,
    /// The most that was resident at once.
    pub(crate) peak_kib: u64,
}

impl ProcessUsage {
    /// Usage of a process that runs and belongs to us; all its threads, those that have ended too.
    pub(crate) fn of(process: u32) -> Self {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{process}/{name}")).expect("a process of ours")
        };
        Self {
            cpu_nanos: cpu_ticks(&read("stat")).expect("/proc/*/stat") * NANOS_PER_TICK,
            written: named(&read("io"), "write_bytes:").unwrap_or(0),
            resident_kib: named(&read("status"), "VmRSS:").unwrap_or(0),
            peak_kib: named(&read("status"), "VmHWM:").unwrap_or(0),
        }
    }

    /// Usage of several processes together.
    pub(crate) fn of_all(processes: &[u32]) -> Self {
        processes.iter().map(|process| Self::of(*process)).fold(Self::default(), |sum, it| Self {
            cpu_nanos: sum.cpu_nanos + it.cpu_nanos,
            written: sum.written + it.written,
            resident_kib: sum.resident_kib + it.resident_kib,
            peak_kib: sum.peak_kib + it.peak_kib,
        })
    }
}

/// Ticks of user and system time. The name of the program, in parentheses, may contain anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_name, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

/// The process that started another one.
pub(crate) fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_name, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// A process and those that it has started and that have not ended.
pub(crate) fn family(process: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let children = numbers.filter(|number| parent(*number) == Some(process));
    std::iter::once(process).chain(children).collect()
}

/// CPU time of a process and all that it has started, also of those that have ended.
pub(crate) fn cpu_nanos_of_family(process: u32) -> u64 {
    let stat = |process: u32| fs::read_to_string(format!("/proc/{process}/stat")).ok();
    let ended = stat(process).and_then(|stat| ended_ticks(&stat)).unwrap_or(0);
    // One that ends meanwhile is counted among the ended ones the next time.
    let alive = family(process).into_iter().filter_map(|it| cpu_ticks(&stat(it)?));
    (ended + alive.sum::<u64>()) * NANOS_PER_TICK
}

/// Ticks of those that a process has started and waited for.
fn ended_ticks(stat: &str) -> Option<u64> {
    let (_name, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(13);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

fn named(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Ticks in which the machine's cores did something, or were taken away from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine(u64);

impl Machine {
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").expect("/proc/stat");
        Self(busy_ticks(&stat).expect("a line of all cores"))
    }

    /// Cores that were busy since then with something else than `own` nanoseconds, in thousandths.
    /// The kernel's own work for us is among it.
    pub(crate) fn disturbance(self, own: u64, micros: u64) -> u64 {
        let busy = Self::now().0.saturating_sub(self.0) * NANOS_PER_TICK;
        permille(busy.saturating_sub(own) / 1_000, micros)
    }
}

/// User, nice, system, interrupts and stolen time; neither idle nor waiting for a disk.
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = fields.map(|it| it.parse().unwrap_or(0)).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft, stolen, ..] = *ticks else {
        return None;
    };
    Some(user + nice + system + interrupts + soft + stolen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 99 1 2 3";
        assert_eq!(cpu_ticks(stat), Some(300));
        let stat = stat.replace("250 50 0 0", "250 50 7 3");
        assert_eq!(ended_ticks(&stat), Some(10));
        let stat = "cpu  1 2 3 400 500 6 7 8 0 0\ncpu0 1 2 3";
        assert_eq!(busy_ticks(stat), Some(27));
        assert_eq!(named("a: 1\nwrite_bytes: 4096\n", "write_bytes:"), Some(4096));
        assert_eq!(named("VmRSS:\t  640 kB\n", "VmRSS:"), Some(640));
    }

    #[test]
    fn a_child_is_of_the_family_while_it_lives_and_its_time_stays() {
        let own = std::process::id();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "while read line; do :; done"]).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        assert_eq!(parent(child.id()), Some(own));
        assert!(family(own).contains(&child.id()));
        let before = cpu_nanos_of_family(own);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!family(own).contains(&child.id()));
        assert!(cpu_nanos_of_family(own) >= before);
    }

    #[test]
    fn a_process_knows_what_it_has_used() {
        let usage = ProcessUsage::of(std::process::id());
        assert!(usage.resident_kib > 0, "{usage:?}");
    }
}
