//! The laws of every storage port: the duties of a store, independent of its technology.
//! [`crate::journal_laws!`] runs those of a journal, [`crate::ports_laws!`] those of the other ports, each law
//! as a test of its own; a law that is added runs on every store.
//!
//! | laws | of |
//! |---|---|
//! | [`claims`], [`endings`] | the version, permanent ids and races of an operation |
//! | [`counters`], [`money`] | bounds, corrections, the book |
//! | [`upkeep`], [`nodes`] | what is due, what may be purged, who has a name |
//! | [`refusals`] | requests that were refused: rings, counts and lists |
//! | [`keys`] | API keys, wallets and prices |
//! | [`edits`] | counters of limits that are edited while the API key is in use |
//! | [`restores`] | windows of restores, in which no unknown request key runs |
//!
//! The laws know no clock but the store's, sleep nowhere, and need a fresh store each. A law that
//! holds among concurrent calls joins them on one task: a store with threads of its own races them.
//! Each law is itself tested: a journal that is broken on purpose must fail it.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // While a store is written: one law by its name.
//! laws::money::balances_are_the_sums_of_their_transfers(&MemoryJournal::new()).await;
//! # }
//! ```

pub mod claims;
pub mod counters;
pub mod edits;
pub mod endings;
pub mod keys;
pub mod money;
pub mod nodes;
pub mod refusals;
pub mod restores;
pub mod tenant;
pub mod upkeep;

use async_trait::async_trait;
use holdfast_domain::admin::RefusedRequests;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeys, Journal, Nodes, Prices, Restores, Statistics, Wallets};

pub use crate::commands::Commands;

/// Ports of a store. A type that implements them all is one already; a test that needs more than the store (a
/// folder that is deleted afterwards), or whose service keeps API keys and prices in another store, implements
/// this for its own bundle.
pub trait Stores: Send + Sync {
    /// Operations and the book.
    fn journal(&self) -> &dyn Journal;
    /// Leases.
    fn nodes(&self) -> &dyn Nodes;
    /// Wallets.
    fn wallets(&self) -> &dyn Wallets;
    /// API keys, if it keeps them.
    fn keys(&self) -> Option<&dyn ApiKeys>;
    /// Price versions, if it keeps them.
    fn prices(&self) -> Option<&dyn Prices>;
    /// Lists of wallets and API keys, if it has them.
    fn lists(&self) -> Option<&dyn Lists>;
    /// Statistics, if it keeps them.
    fn statistics(&self) -> Option<&dyn Statistics>;
    /// Lists of refused requests, if it keeps them.
    fn refused_requests(&self) -> Option<&dyn RefusedRequests>;
    /// Restores, if it keeps them.
    fn restores(&self) -> Option<&dyn Restores>;
    /// Commands of administration.
    fn commands(&self) -> &dyn Commands;
}

/// Lists by which laws see what there is. No port has them: no request needs one, and those who do
/// read pages, each service in its own way.
#[async_trait]
pub trait Lists: Send + Sync {
    /// Every API key, oldest first.
    async fn all_api_keys(&self) -> Vec<ApiKey>;
    /// Every wallet, oldest first.
    async fn all_wallets(&self) -> Vec<Wallet>;
}

impl<T> Stores for T
where
    T: Journal
        + Nodes
        + ApiKeys
        + Wallets
        + Prices
        + Statistics
        + RefusedRequests
        + Restores
        + Lists
        + Commands,
{
    fn journal(&self) -> &dyn Journal {
        self
    }

    fn nodes(&self) -> &dyn Nodes {
        self
    }

    fn wallets(&self) -> &dyn Wallets {
        self
    }

    fn keys(&self) -> Option<&dyn ApiKeys> {
        Some(self)
    }

    fn prices(&self) -> Option<&dyn Prices> {
        Some(self)
    }

    fn lists(&self) -> Option<&dyn Lists> {
        Some(self)
    }

    fn statistics(&self) -> Option<&dyn Statistics> {
        Some(self)
    }

    fn refused_requests(&self) -> Option<&dyn RefusedRequests> {
        Some(self)
    }

    fn restores(&self) -> Option<&dyn Restores> {
        Some(self)
    }

    fn commands(&self) -> &dyn Commands {
        self
    }
}

/// Runs the laws of a journal on the stores that an async function without arguments makes: each law
/// is a `#[tokio::test]` on a fresh one. What follows the function goes to that attribute. The stores
/// need wallets, commands and nodes beside the journal: the laws make wallets by commands and are run through nodes.
///
/// ```text
/// journal_laws!(fresh);
/// journal_laws!(fresh, flavor = "multi_thread", worker_threads = 2);
/// ```
#[macro_export]
macro_rules! journal_laws {
    ($fresh:path $(, $($setting:tt)+)?) => {
        $crate::each_law_of_a_journal! { $crate::law_as_test { $fresh } { $($($setting)+)? } }
    };
}

/// Runs the laws of wallets, API keys, prices and nodes, as [`journal_laws!`] runs a journal's. The
/// stores keep all of them.
///
/// [`journal_laws!`]: crate::journal_laws!
#[macro_export]
macro_rules! ports_laws {
    ($fresh:path $(, $($setting:tt)+)?) => {
        $crate::each_law_of_the_ports! { $crate::law_as_test { $fresh } { $($($setting)+)? } }
    };
}

/// Calls a macro once for each law: `$callback! { { $fresh } $settings module law }`.
#[doc(hidden)]
#[macro_export]
macro_rules! each_law {
    ($callback:path { $fresh:path } $settings:tt) => {
        $crate::each_law_of_a_journal! { $callback { $fresh } $settings }
        $crate::each_law_of_the_ports! { $callback { $fresh } $settings }
    };
}

/// The list of a journal's laws.
#[doc(hidden)]
#[macro_export]
macro_rules! each_law_of_a_journal {
    ($callback:path { $fresh:path } $settings:tt) => {
        $crate::each_law_of! { $callback { $fresh } $settings
            claims {
                a_claim_is_exclusive_among_concurrent_offers,
                a_key_that_is_bound_is_a_conflict_whatever_else_is_wrong,
                a_loser_leaves_no_trace,
                a_missing_wallet_has_nothing,
                a_refused_claim_leaves_no_trace,
                an_offer_again_after_it_landed_is_a_conflict_and_shows_whose_it_is,
                holds_never_overdraw,
                a_row_keeps_the_alias_of_its_first_claim,
                funds_that_leased_operations_hold_are_distinguished,
                limits_are_judged_before_funds,
                one_wallets_operations_do_not_touch_another,
            }
            counters {
                a_bound_holds_among_concurrent_claims,
                a_correction_goes_to_the_window_of_the_admission,
                a_correction_is_never_refused,
                a_limit_names_its_counter_and_changes_nothing,
                api_keys_count_apart,
                every_ending_leaves_in_the_counters_what_it_should,
                receipts_and_refusals_have_the_values_of_counters,
                settlements_correct_what_was_reserved,
            }
            endings {
                a_cancelled_open_operation_ends_and_moves_nothing,
                a_cancelled_operation_is_only_marked,
                a_given_up_operation_is_abandoned,
                a_permanent_id_stops_its_effect,
                a_recorded_result_is_settled_later,
                a_refused_operation_keeps_its_error,
                a_result_completes_and_settles,
                a_result_of_nothing_moves_nothing_to_revenue,
                a_stale_version_is_a_conflict_and_changes_nothing,
                an_open_operation_runs_again_as_its_next_generation,
                an_open_operation_waits_for_its_fourth_generation,
                concurrent_endings_settle_once,
                receipts_carry_the_version_and_a_clock_that_never_goes_back,
            }
            money {
                a_deposit_is_posted_once,
                a_deposit_to_no_wallet_is_refused,
                adjustments_do_not_overdraw,
                balances_are_the_sums_of_their_transfers,
                concurrent_refunds_stay_within_the_charge,
                postings_leave_room_for_what_is_held,
                postings_move_something_in_their_direction,
                refunds_need_a_captured_charge,
                statements_show_the_newest_transfers_oldest_first,
            }
            upkeep {
                a_heartbeat_reports_the_work_that_waits,
                a_load_shows_the_owners_lease,
                due_are_the_recorded_and_the_orphaned,
                due_ends_at_its_limit,
                leased_to_lists_the_running_claims_of_one_process,
                purge_takes_only_what_has_ended_long_enough_ago,
                purge_takes_the_content_and_nothing_else,
                the_clock_is_that_of_reads_and_receipts,
            }
        }
    };
}

/// The list of the other ports' laws.
#[doc(hidden)]
#[macro_export]
macro_rules! each_law_of_the_ports {
    ($callback:path { $fresh:path } $settings:tt) => {
        $crate::each_law_of! { $callback { $fresh } $settings
            edits {
                a_claim_by_limits_of_before_an_edit_is_refused,
                counters_are_sums_over_all_rows_whatever_limits_were_set_when,
            }
            keys {
                a_claim_does_not_change_a_known_price,
                a_key_needs_its_wallet,
                a_key_that_has_ended_is_not_rotated,
                a_revoked_key_stays_revoked,
                a_rotation_adds_a_credential_and_ends_the_others_later,
                a_standing_shows_every_counter_in_the_window_of_now,
                an_issued_key_is_found_by_its_credential,
                concurrent_issues_of_a_name_make_one_key,
                names_of_keys_are_taken_once,
                names_of_wallets_are_taken_once,
                prices_never_change,
                wallets_are_found_and_listed,
            }
            nodes {
                a_name_is_taken_when_its_lease_has_expired,
                a_node_renews_only_its_own_row,
                a_taken_name_is_taken_whoever_had_it,
                one_of_many_starts_takes_an_expired_name,
                only_its_own_process_leaves,
                an_address_is_its_own_process_s,
            }
            refusals {
                a_purge_takes_old_hours_and_no_listed_request,
                a_ring_has_the_newest_of_its_key_and_of_each_code,
                additions_of_processes_add_up,
                refused_requests_are_found_and_filtered,
            }
            restores {
                a_claim_that_was_made_before_a_restore_is_refused,
                a_window_ends_by_the_clock_of_the_store,
                no_unknown_key_runs_within_a_window,
                unknown_keys_that_are_allowed_end_every_window,
            }
        }
    };
}

/// Calls a macro once for each of these laws.
#[doc(hidden)]
#[macro_export]
macro_rules! each_law_of {
    ($callback:path { $fresh:path } $settings:tt $($module:ident { $($law:ident,)+ })+) => {
        $($crate::each_law_of! { @laws $callback { $fresh } $settings $module { $($law,)+ } })+
    };
    (@laws $callback:path { $fresh:path } $settings:tt $module:ident { $($law:ident,)+ }) => {
        $($callback! { { $fresh } $settings $module $law })+
    };
}

/// A law as a test.
#[doc(hidden)]
#[macro_export]
macro_rules! law_as_test {
    ({ $fresh:path } { $($setting:tt)* } $module:ident $law:ident) => {
        #[tokio::test($($setting)*)]
        async fn $law() {
            let stores = $fresh().await;
            $crate::laws::$module::$law(&stores).await;
        }
    };
}
