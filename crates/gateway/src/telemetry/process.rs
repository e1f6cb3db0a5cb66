//! Metrics of the process itself: its version, and what the system says of it. What `/proc` does not
//! tell is left out: a number that is made up would raise no alarm.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{counter, gauge};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::float::as_float;

/// Shows what does not change: to be called once, when the process begins.
pub(super) fn begin() {
    gauge!("holdfast_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    // Before the epoch there is nothing to tell.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge!("process_start_time_seconds").set(started.as_secs_f64());
}

/// Sets the gauges by what the system says now.
pub(super) fn set_gauges() {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    counter!("process_cpu_seconds_total").absolute(u64::try_from(cpu.tv_sec).unwrap_or(0));
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

/// The number of a field of `/proc/self/status`, which has its memory in KiB.
fn number(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tholdfast\nVmHWM:\t  90 kB\nVmRSS:\t    84 kB\nThreads:\t7\n";
        assert_eq!(number(status, "VmRSS:"), Some(84));
        assert_eq!(number(status, "Threads:"), Some(7));
        assert_eq!(number(status, "VmSize:"), None);
    }
}
