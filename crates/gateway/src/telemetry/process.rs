//! Metrics of the process itself: its version, and the readings of the system. Metrics that `/proc` does not
//! have are left out: an invented number would raise no alarm.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{counter, gauge};
use rustix::process::{Resource, getrlimit};

use super::float::as_float;

/// Ticks in which Linux counts processor time for processes, on every machine that Rust runs on.
const TICKS_PER_SECOND: u64 = 100;

/// Shows what does not change: to be called once, when the process begins.
pub(super) fn begin() {
    gauge!("holdfast_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    // Before the epoch there is no start time to report.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge!("process_start_time_seconds").set(started.as_secs_f64());
}

/// Sets the gauges to the current readings of the system.
pub(super) fn set_gauges() {
    if let Some(ticks) = fs::read_to_string("/proc/self/stat").ok().and_then(|it| ticks(&it)) {
        counter!("process_cpu_seconds_total").absolute(ticks / TICKS_PER_SECOND);
    }
    if let Some(files) = getrlimit(Resource::Nofile).current {
        gauge!("process_max_fds").set(as_float(files));
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        // Less the one that reads.
        gauge!("process_open_fds").set(as_float(files.count().saturating_sub(1)));
    }
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        for (field, name, unit) in [
            ("VmRSS:", "process_resident_memory_bytes", 1_024),
            ("VmSize:", "process_virtual_memory_bytes", 1_024),
            ("Threads:", "process_threads", 1),
        ] {
            if let Some(value) = number(&status, field) {
                gauge!(name).set(as_float(value.saturating_mul(unit)));
            }
        }
    }
}

/// Ticks of processor time in `/proc/self/stat`, the process's own and the kernel's for it.
fn ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, may have spaces: what follows it begins with the third field.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (own, kernel) = (fields.next()?, fields.next()?);
    own.parse::<u64>().ok()?.checked_add(kernel.parse().ok()?)
}

/// The number of a field of `/proc/self/status`, which has its memory in KiB.
fn number(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{number, ticks};

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 9 0 0 0 250 51 0 0 20 0 7 0";
        assert_eq!(ticks(stat), Some(301));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tholdfast\nVmHWM:\t  90 kB\nVmRSS:\t    84 kB\nThreads:\t7\n";
        assert_eq!(number(status, "VmRSS:"), Some(84));
        assert_eq!(number(status, "Threads:"), Some(7));
        assert_eq!(number(status, "VmSize:"), None);
    }
}
