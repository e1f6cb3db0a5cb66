//! What can be wrong with a journal, and the law that notices. The list of laws is the testkit's: a law
//! without a line in here fails a test.

/// Makes the enum and the table from one list.
macro_rules! defects {
    ($($(#[$doc:meta])* $defect:ident breaks $law:literal;)+) => {
        /// One thing that is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Defect {
            $($(#[$doc])* $defect,)+
        }

        /// Each defect with the law that it breaks.
        pub(super) const TABLE: &[(Defect, &str)] = &[$((Defect::$defect, $law),)+];
    };
}

defects! {
    /// Every claim for a key is told that it was admitted.
    LosersAreToldTheyWon breaks "claims::a_claim_is_exclusive_among_concurrent_offers";
    /// Funds are looked at before the version.
    FundsBeforeConflict breaks
        "claims::a_key_that_is_bound_is_a_conflict_whatever_else_is_wrong";
    /// A claim that lost its race keeps its reservation, under an id of its own.
    LosersStayReserved breaks "claims::a_loser_leaves_no_trace";
    /// A wallet that is missing is made.
    ClaimsMakeWallets breaks "claims::a_missing_wallet_has_nothing";
    /// A claim without funds is refused and its key is bound all the same.
    RefusedClaimsBind breaks "claims::a_refused_claim_leaves_no_trace";
    /// A claim that landed is admitted again.
    OffersAgainPass breaks
        "claims::an_offer_again_after_it_landed_is_a_conflict_and_shows_whose_it_is";
    /// A claim without funds is admitted without a hold.
    HoldsMayBeMissing breaks "claims::holds_never_overdraw";
    /// Rows have the id of their model alone.
    AliasesAreLost breaks "claims::a_row_keeps_the_alias_of_its_first_claim";
    /// Held funds are no reason of their own.
    HeldFundsAreLost breaks "claims::funds_that_leased_operations_hold_are_distinguished";
    /// Funds are looked at before limits.
    FundsBeforeLimits breaks "claims::limits_are_judged_before_funds";
    /// Every operation is paid by the oldest wallet.
    WalletsAreMixedUp breaks "claims::one_wallets_operations_do_not_touch_another";

    /// Limits are counted and not enforced.
    BoundsAreIgnored breaks "counters::a_bound_holds_among_concurrent_claims";
    /// Corrections go to the window of the settlement.
    CorrectionsGoToNow breaks "counters::a_correction_goes_to_the_window_of_the_admission";
    /// Corrections have a bound too.
    CorrectionsAreRefused breaks "counters::a_correction_is_never_refused";
    /// Another counter is named than the one that is full.
    LimitsAreMisnamed breaks "counters::a_limit_names_its_counter_and_changes_nothing";
    /// All API keys share their counters.
    KeysCountTogether breaks "counters::api_keys_count_apart";
    /// Endings without a charge leave the counters as they are.
    CountersAreNotGivenBack breaks
        "counters::every_ending_leaves_in_the_counters_what_it_should";
    /// What may have run gives its request back.
    AbandonedIsNotCounted breaks
        "counters::every_ending_leaves_in_the_counters_what_it_should";
    /// What has not run gives its tokens back twice.
    TokensAreGivenBackTwice breaks
        "counters::every_ending_leaves_in_the_counters_what_it_should";
    /// What has not run gives its request back in every generation.
    RetriesAreNotCounted breaks
        "counters::every_ending_leaves_in_the_counters_what_it_should";
    /// Receipts do not tell what the counters come to.
    ReceiptsTellNoCounters breaks
        "counters::receipts_and_refusals_have_the_values_of_counters";
    /// A refusal tells no counter but the one that is full.
    RefusalsTellOneCounter breaks
        "counters::receipts_and_refusals_have_the_values_of_counters";
    /// Settlements leave the counters as they are.
    CountersAreNotCorrected breaks "counters::settlements_correct_what_was_reserved";

    /// The wish to cancel gives the hold back.
    AskingReleasesTheHold breaks "endings::a_cancelled_operation_is_only_marked";
    /// The cancel of an open operation gives its hold back once more.
    CancellingReleasesTheHold breaks "endings::a_cancelled_open_operation_ends_and_moves_nothing";
    /// What was given up may run again.
    GivenUpIsOpen breaks "endings::a_given_up_operation_is_abandoned";
    /// A hold or a settlement that exists is written under another number.
    PermanentIdsRepeat breaks "endings::a_permanent_id_stops_its_effect";
    /// Settling what was recorded moves no money.
    SettlingMovesNothing breaks "endings::a_recorded_result_is_settled_later";
    /// The sealed error is not kept.
    ErrorsAreForgotten breaks "endings::a_refused_operation_keeps_its_error";
    /// The whole hold is charged.
    RestsAreKept breaks "endings::a_result_completes_and_settles";
    /// The row does not tell what was tried.
    AttemptsAreForgotten breaks "endings::a_result_completes_and_settles";
    /// A claim reserves nothing.
    HoldsAreNotMoved breaks "endings::a_result_completes_and_settles";
    /// The book has a settlement of nothing.
    NothingIsTransferred breaks "endings::a_result_of_nothing_moves_nothing_to_revenue";
    /// A change is written whatever version it was judged over.
    StaleVersionsPass breaks "endings::a_stale_version_is_a_conflict_and_changes_nothing";
    /// The next generation keeps the prices of the one before.
    ReopeningKeepsThePrice breaks "endings::an_open_operation_runs_again_as_its_next_generation";
    /// A row tells when it was made for when its generation was admitted.
    AdmissionsStand breaks "endings::an_open_operation_waits_for_its_fourth_generation";
    /// A settlement that lost its race is refused and charged all the same.
    LosersAreCharged breaks "endings::concurrent_endings_settle_once";
    /// Receipts are stamped with a clock of their own, an hour behind.
    ReceiptsAreBehind breaks
        "endings::receipts_carry_the_version_and_a_clock_that_never_goes_back";
    /// Receipts always tell the first version.
    VersionsStand breaks "endings::receipts_carry_the_version_and_a_clock_that_never_goes_back";

    /// A claim brings prices under a name that is taken.
    ClaimsChangePrices breaks "keys::a_claim_does_not_change_a_known_price";
    /// A key's wallet is made with it.
    KeysMakeWallets breaks "keys::a_key_needs_its_wallet";
    /// A key that has ended gets another credential.
    EndedKeysAreRotated breaks "keys::a_key_that_has_ended_is_not_rotated";
    /// A rotation leaves the other credentials as they are.
    OldCredentialsStay breaks "keys::a_rotation_adds_a_credential_and_ends_the_others_later";
    /// A rotation that is refused ends credentials all the same.
    RefusedRotationsEnd breaks "keys::a_rotation_adds_a_credential_and_ends_the_others_later";
    /// A standing leaves out the counters that nobody has moved.
    StandingsHaveGaps breaks "keys::a_standing_shows_every_counter_in_the_window_of_now";
    /// All API keys stand together.
    StandingsAreMixedUp breaks "keys::a_standing_shows_every_counter_in_the_window_of_now";
    /// The moment of a revocation moves.
    RevokingAgainCounts breaks "keys::a_revoked_key_stays_revoked";
    /// The credentials of a revoked key go on.
    CredentialsOutliveKeys breaks "keys::a_revoked_key_stays_revoked";
    /// A key is read without its limits.
    LimitsAreForgotten breaks "keys::an_issued_key_is_found_by_its_credential";
    /// Whether a name is free is read first and not looked at again.
    NamesOfKeysRace breaks "keys::concurrent_issues_of_a_name_make_one_key";
    /// A name may be given again.
    NamesOfKeysRepeat breaks "keys::names_of_keys_are_taken_once";
    /// A wallet's name may be given again.
    NamesOfWalletsRepeat breaks "keys::names_of_wallets_are_taken_once";
    /// Other numbers under a known name are taken.
    PricesAreOverwritten breaks "keys::prices_never_change";
    /// What comes before a conflict is pinned.
    PricesArePinnedByHalves breaks "keys::prices_never_change";
    /// Wallets are listed newest first.
    WalletsAreListedBackwards breaks "keys::wallets_are_found_and_listed";

    /// A claim passes whatever limits it was judged by.
    StaleLimitsPass breaks "edits::a_claim_by_limits_of_before_an_edit_is_refused";
    /// A counter that is seeded is not corrected by the operations that run.
    SeedsLeaveNoBit breaks "edits::counters_are_sums_over_all_rows_whatever_limits_were_set_when";
    /// A counter is seeded by the hours in which operations have ended.
    SeedsGoByEndings breaks "edits::counters_are_sums_over_all_rows_whatever_limits_were_set_when";

    /// A posting id is accepted twice.
    PostingsRepeat breaks "money::a_deposit_is_posted_once";
    /// A deposit makes its wallet.
    DepositsMakeWallets breaks "money::a_deposit_to_no_wallet_is_refused";
    /// An adjustment takes what there is, and says that it took all.
    AdjustmentsTakeLess breaks "money::adjustments_do_not_overdraw";
    /// The book leaves out what comes back of a hold.
    RestsAreNotListed breaks "money::balances_are_the_sums_of_their_transfers";
    /// Each refund is measured by the charge alone.
    RefundsAreNotSummed breaks "money::concurrent_refunds_stay_within_the_charge";
    /// A posting needs room beside what is available alone.
    HeldHasNoRoom breaks "money::postings_leave_room_for_what_is_held";
    /// Postings of nothing, and deposits that take, pass.
    AnythingIsPosted breaks "money::postings_move_something_in_their_direction";
    /// What is recorded is refunded before it was paid.
    RefundsComeEarly breaks "money::refunds_need_a_captured_charge";
    /// A statement shows the oldest transfers.
    StatementsShowTheOldest breaks
        "money::statements_show_the_newest_transfers_oldest_first";

    /// A start takes a name whose lease is live.
    LiveNamesAreTaken breaks "nodes::a_name_is_taken_when_its_lease_has_expired";
    /// A heartbeat brings back a row that was lost.
    LostRowsAreRenewed breaks "nodes::a_node_renews_only_its_own_row";
    /// A start that may take the name waits for its lease.
    TakingWaits breaks "nodes::a_taken_name_is_taken_whoever_had_it";
    /// Whether a lease has expired is read first and not looked at again.
    ExpiredNamesRace breaks "nodes::one_of_many_starts_takes_an_expired_name";
    /// Leaving removes whoever has the name.
    AnybodyLeaves breaks "nodes::only_its_own_process_leaves";
    /// An address is that of whoever has the name.
    AddressesGoWithNames breaks "nodes::an_address_is_its_own_process_s";

    /// A ring has one code.
    RareCodesAreForgotten breaks "refusals::a_ring_has_the_newest_of_its_key_and_of_each_code";
    /// Of an addition one API key is counted.
    OtherKeysAreNotCounted breaks "refusals::additions_of_processes_add_up";
    /// Hours are purged whatever their age.
    YoungHoursArePurged breaks "refusals::a_purge_takes_old_hours_and_no_listed_request";
    /// Lists are of all wallets.
    WalletsAreNotFiltered breaks "refusals::refused_requests_are_found_and_filtered";

    /// API keys are read without the window of a restore.
    WindowsAreForgotten breaks "restores::no_unknown_key_runs_within_a_window";
    /// A claim passes that was made before a restore.
    RestoresAreOverlooked breaks "restores::a_claim_that_was_made_before_a_restore_is_refused";
    /// The window of a restore stays open.
    WindowsNeverEnd breaks "restores::a_window_ends_by_the_clock_of_the_store";
    /// Unknown keys are allowed, and an earlier window stays open.
    AllowedWindowsStay breaks "restores::unknown_keys_that_are_allowed_end_every_window";

    /// A heartbeat reports no work.
    WorkIsNotReported breaks "upkeep::a_heartbeat_reports_the_work_that_waits";
    /// A read shows the owner's lease only while it is the owner's.
    SupersededLeasesAreHidden breaks "upkeep::a_load_shows_the_owners_lease";
    /// What is leased through an expired row is not due.
    ExpiredLeasesAreNotDue breaks "upkeep::due_are_the_recorded_and_the_orphaned";
    /// All that is due is listed.
    DueIsUnlimited breaks "upkeep::due_ends_at_its_limit";
    /// Whose claims are asked for is told by the name alone.
    IncarnationsAreMixedUp breaks "upkeep::leased_to_lists_the_running_claims_of_one_process";
    /// Who asked to cancel is not told with the claims.
    AskingIsNotListed breaks "upkeep::leased_to_lists_the_running_claims_of_one_process";
    /// Results are purged whatever their age.
    YoungResultsArePurged breaks "upkeep::purge_takes_only_what_has_ended_long_enough_ago";
    /// Purged results are counted and stay.
    PurgedResultsStay breaks "upkeep::purge_takes_the_content_and_nothing_else";
    /// More is purged than was asked for.
    PurgeIsUnlimited breaks "upkeep::purge_takes_the_content_and_nothing_else";
    /// The clock is read elsewhere than with rows, an hour behind.
    TheClockIsAnother breaks "upkeep::the_clock_is_that_of_reads_and_receipts";
}
