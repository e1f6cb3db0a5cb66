//! Steps: transitions of `operation.md`'s table and the races that it names, which a run counts when it reaches them.

use std::fmt;

macro_rules! steps {
    ($($name:ident => $label:literal,)*) => {
        /// Step that a run can reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Step {
            $(#[doc = $label] $name,)*
        }

        impl Step {
            /// Every step, transitions first.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Name in a report.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

steps! {
    Claim => "T1 claim",
    Finish => "T2 finish",
    Record => "T2a record",
    Settle => "T2b settle",
    Cancel => "T2c cancel",
    NotRun => "T3 not run",
    NotRunCancelled => "T3 not run, cancelled",
    Refuse => "T4 refuse",
    GiveUp => "T5 give up",
    CancelOpen => "T5' cancel of an open key",
    ReapDeadLease => "T6 reap, dead lease",
    ReapMissingRow => "T6 reap, node row missing",
    ReapSuperseded => "T6 reap, owner superseded",
    ReapDeadline => "T6 reap, deadline passed",
    DisownSent => "T6 disown as T5",
    DisownUnsent => "T6 disown as T3",
    Reopen => "T7 reopen",
    LateResult => "T8 late result",
    Purge => "T9 purge",
    ClaimRace => "race: two claims of one key",
    ReopenRace => "race: two reopenings of one key",
    ReapRace => "race: reap against another change",
    SettleRace => "race: two settlements of one record",
    FinishCancelRace => "race: finish against a cancel",
    CancelRace => "race: cancel against another change",
    CancelReopenRace => "race: cancel of an open key against its reopening",
    ClaimLanded => "lost answer: claim that landed",
    ClaimNotLanded => "lost answer: claim that did not land",
    ClaimLate => "lost answer: claim that landed late",
    EndingLanded => "lost answer: ending that landed",
    EndingNotLanded => "lost answer: ending that did not land",
    EndingLate => "lost answer: ending that landed late",
    FoundOwnEnding => "lost answer: own ending found by its conflict",
    FailoverLanded => "failover: open commit that landed",
    FailoverNotLanded => "failover: open commit that did not land",
    CrashUnsent => "crash between claim and first byte",
    CrashSent => "crash after the first byte",
    Superseded => "two live processes under one node name",
    LeaseLost => "claim refused, own lease not live",
    FundsShort => "claim refused, funds held or short",
    LimitReached => "claim refused, limit reached",
    NextRoute => "second route after a proven refusal",
    NextRouteUnknown => "second route after an unknown outcome, one-charge",
    Attached => "caller attached to a run, same process or row",
    Relayed => "caller read a relay of another node",
    RelayCut => "relay cut by the network",
    StorageUnavailable => "caller refused while the store gave no verdict",
    OtherRequest => "caller refused, key bound to another request",
    TooSoon => "reopening refused, too soon",
    Expired => "caller answered after the purge",
    Drained => "graceful shutdown",
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
