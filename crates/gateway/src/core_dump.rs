//! Core dumps, and memory that other processes may read: off for a process that holds prompts, answers and keys.
//!
//! Freed memory keeps them, and a core dump writes all of it to a disk. The flag of Linux (`PR_SET_DUMPABLE`)
//! also keeps `/proc/PID/mem` and debuggers of the same user out. On other systems no flag is set.
//!
//! Secrets are not overwritten when they are dropped (`zeroize`): buffers of sockets, of TLS and of parsers have copies of
//! them that no type of ours reaches.

use holdfast_config::allows_core_dumps;

/// Switches core dumps off, unless the operator's environment allows them.
pub(crate) fn forbid() {
    if allows_core_dumps() {
        tracing::warn!("core dumps are allowed: they have prompts, answers and secrets");
        return;
    }
    set_undumpable();
}

#[cfg(target_os = "linux")]
fn set_undumpable() {
    use holdfast_domain::ErrorChain;
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(error = %ErrorChain(&error), "core dumps were not switched off");
    }
}

#[cfg(not(target_os = "linux"))]
const fn set_undumpable() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn a_process_that_holds_secrets_is_not_dumped() {
        super::forbid();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
