//! Table of the models: the rules that are broken in each with the law that falls, and the situations it reaches.

/// A model with its definitions.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) file: &'static str,
    pub(crate) flags: &'static [&'static str],
    /// Checked by a formula over cycles, and not by laws over states.
    pub(crate) is_formula: bool,
    /// Rules that are broken together, and the law that falls.
    pub(crate) mutants: &'static [(&'static [&'static str], &'static str)],
    /// Rules whose breach is covered by another rule.
    pub(crate) covered: &'static [&'static str],
    pub(crate) probes: &'static [&'static str],
}

const PLAIN: Model =
    Model { file: "", flags: &[], is_formula: false, mutants: &[], covered: &[], probes: &[] };

pub(crate) const ALL: [&Model; 14] = [
    &OPERATION,
    &TAKEOVER,
    &COMMIT,
    &WALLET,
    &CAP,
    &ROUTES,
    &ONE_CHARGE,
    &REPLAY,
    &CONFLICT,
    &LIMITS,
    &TWO_KEYS,
    &REST,
    &CHAIN,
    &IGNORES_KEYS,
];

pub(crate) const OPERATION: Model = Model {
    file: "operation",
    mutants: &[
        (&["REDISPATCH_AFTER_LOST_LEASE"], "I1_one_run"),
        (&["PROVIDER_HAS_NO_RECORD"], "I1_one_run"),
        (&["RUN_AGAIN_AFTER_TAKEOVER"], "I1_one_run"),
        (&["DISOWN_BY_NAME"], "I1_one_run"),
    ],
    probes: &["T6_REAP", "T6_DISOWN_OPEN", "T6_DISOWN_ABANDONED", "TWO_OF_ONE_NAME"],
    ..PLAIN
};

pub(crate) const TAKEOVER: Model = Model {
    file: "takeover",
    probes: &["LANDED_AFTER_A_CRASH", "TAKEN_OVER_WHILE_IT_RUNS"],
    ..PLAIN
};

pub(crate) const COMMIT: Model = Model {
    file: "commit",
    mutants: &[
        (&["SEND_BEFORE_COMMIT"], "I1_one_run"),
        (&["RUN_BEFORE_CLAIM"], "I1_one_run"),
        (&["OWNS_BY_NODE_AND_NUMBER"], "I1_one_run"),
        (&["FAILURE_READ_AS_NOT_RUN"], "I1_one_run"),
        (&["NOT_RUN_WITHOUT_CLAIM"], "I1_one_run"),
        (&["REOPEN_KEEPS_CLAIM"], "I1_one_run"),
        (&["STORE_IGNORES_VERSIONS"], "I2_one_charge"),
        (&["HOLD_TIMES_OUT"], "I3_hold_while_unsettled"),
        (&["LOSER_RELEASES_SHARED_HOLD"], "I3_hold_while_unsettled"),
        (&["HOLD_KEPT"], "I3_hold_while_unsettled"),
        (&["ANSWERS_WHILE_UNCERTAIN"], "I6_one_answer"),
        (&["ANSWERED_BEFORE_COMMIT"], "I6_one_answer"),
        (&["LOSER_ANSWERS_ITS_RESULT"], "I6_one_answer"),
        (&["OTHER_BYTES_REPLAYED"], "I6_one_answer"),
        (&["REOPEN_KEEPS_GENERATION"], "I8_generation_and_request"),
        (&["FINISH_WITHOUT_PHASE"], "terminal_is_final"),
        (&["LATE_RESULT_CHARGES"], "late_never_charges"),
    ],
    probes: &[
        "T1_CLAIM",
        "T2_FINISH",
        "T3_NOT_RUN",
        "T5_GIVE_UP",
        "T7_REOPEN",
        "T8_LATE",
        "REST_RETURNED",
        "REPLAYED_RESULT",
        "COMPLETED_IN_GENERATION_3",
        "LATE_AFTER_REAP",
        "LOST_CLAIM_LANDED",
        "LOST_RESULT_LANDED",
    ],
    ..PLAIN
};

pub(crate) const WALLET: Model = Model {
    file: "wallet",
    mutants: &[
        (&["STORE_IGNORES_PERMANENT_IDS", "SETTLE_WITHOUT_PHASE"], "I2_one_charge"),
        (&["RECORD_AS_COMPLETED"], "I4_captured_when_completed"),
        (&["NOT_RUN_WITHOUT_PHASE"], "I5_conservation"),
        (&["HOLD_RELEASED_TWICE"], "I5_conservation"),
        (&["REFUND_LOST"], "I5_conservation"),
        (&["REAP_FROM_RECORDED"], "I9_usage_record"),
        (&["STORE_IGNORES_BOUNDS"], "no_negative_amount"),
        (&["OTHER_AMOUNT_CHARGED"], "price_is_charged"),
        (&["REFUND_UNBOUNDED"], "refund_within_charge"),
    ],
    covered: &["STORE_IGNORES_PERMANENT_IDS", "SETTLE_WITHOUT_PHASE"],
    probes: &[
        "T2A_RECORD",
        "T2B_SETTLE",
        "HELD_WHILE_RECORDED",
        "BOTH_CHARGED",
        "REFUSED_FOR_FUNDS",
        "METERED_ABOVE_HOLD",
        "TWO_HOLDS",
        "REFUNDED_WHOLE",
    ],
    ..PLAIN
};

pub(crate) const CAP: Model = Model {
    file: "wallet",
    flags: &["CAP=2"],
    mutants: &[(&["CAP_IGNORED"], "cap_bounds_charges")],
    probes: &["REFUSED_BY_CAP"],
    ..PLAIN
};

pub(crate) const ROUTES: Model = Model {
    file: "routes",
    mutants: &[
        (&["NEXT_ROUTE_AFTER_UNKNOWN"], "I1_one_run"),
        (&["NEXT_ROUTE_AFTER_UNCERTAIN_NOT_RUN"], "I1_one_run"),
        (&["CANCEL_OVERWRITES_THE_RUN"], "I3_hold_while_unsettled"),
        (&["CANCEL_CHARGES_WHAT_NEVER_RAN"], "I7_charge_after_run"),
        (&["NOT_RUN_FORGETS_THE_CANCEL"], "cancelled_never_opens"),
        (&["CANCEL_GIVES_BACK_AGAIN"], "counters_are_exact"),
    ],
    probes: &[
        "T2C_CANCEL",
        "T4_REFUSE",
        "T5C_CANCEL_OPEN",
        "CANCELLED_UNSENT",
        "SECOND_ROUTE_RUNS",
        "COMPLETED_AFTER_A_CANCEL",
    ],
    ..PLAIN
};

pub(crate) const ONE_CHARGE: Model =
    Model { file: "routes", flags: &["ONE_CHARGE"], probes: &["RAN_TWICE_CHARGED_ONCE"], ..PLAIN };

pub(crate) const REPLAY: Model = Model {
    file: "replay",
    mutants: &[
        (&["PURGED_ROW_IS_FREE"], "I1_one_run"),
        (&["KEY_SHARED_ACROSS_API_KEYS"], "key_is_scoped"),
    ],
    probes: &["T9_PURGE", "BOTH_KEYS_ANSWERED", "GIVEN_THE_CHARGE_ALONE"],
    ..PLAIN
};

pub(crate) const CONFLICT: Model = Model {
    file: "replay",
    flags: &["SECOND_REQUEST"],
    mutants: &[(&["FINGERPRINT_FORGOTTEN"], "request_is_bound")],
    probes: &["CONFLICTED"],
    ..PLAIN
};

pub(crate) const LIMITS: Model = Model {
    file: "limits",
    mutants: &[
        (&["NOT_RUN_GIVES_BACK_AGAIN"], "minutes_are_exact"),
        (&["REOPEN_AT_ONCE"], "no_generation_too_soon"),
    ],
    probes: &["REOPENED_AFTER_A_WAIT"],
    ..PLAIN
};

pub(crate) const TWO_KEYS: Model = Model {
    file: "limits",
    flags: &["TWO_KEYS"],
    mutants: &[
        (&["GIVE_UP_GIVES_THE_REQUEST_BACK"], "minutes_are_exact"),
        (&["MINUTE_IGNORED"], "minute_bounds_runs"),
    ],
    probes: &["BOTH_MINUTES", "REFUSED_FOR_THE_MINUTE"],
    ..PLAIN
};

pub(crate) const REST: Model = Model {
    file: "rest",
    is_formula: true,
    mutants: &[
        (&["NO_DEADLINE"], "L1_comes_to_rest"),
        (&["SETTLE_FOR_DEAD_NODES_ONLY"], "L1_comes_to_rest"),
    ],
    // A dead task is disowned or reaped at its deadline; a hung one has only the deadline.
    covered: &["NO_DISOWN"],
    ..PLAIN
};

pub(crate) const CHAIN: Model = Model {
    file: "chain",
    mutants: &[
        (&["NOT_RUN_AFTER_SECOND_ATTEMPT"], "no_second_run"),
        (&["PROOF_WITHOUT_ECHO"], "no_second_run"),
        (&["DRAINING_IS_PROOF"], "no_second_run"),
        (&["ASKS_UNDER_ANOTHER_KEY"], "no_second_run"),
        (&["ASKS_UNDER_ANOTHER_KEY"], "no_second_charge"),
        (&["CUT_READ_AS_ANSWER"], "no_unpaid_answer"),
    ],
    probes: &["ANSWERED", "ANSWERED_LATER", "ANSWERED_AFTER_PROOF", "LATE_ARRIVAL"],
    ..PLAIN
};

pub(crate) const IGNORES_KEYS: Model = Model {
    file: "chain",
    flags: &["IGNORES_KEYS"],
    mutants: &[(&["ASKS_WHO_IGNORES_KEYS"], "no_second_run")],
    ..PLAIN
};
