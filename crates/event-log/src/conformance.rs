//! The conformance suite: the behaviours that every backend of the log must show.
//!
//! A backend implements [`Harness`] and calls [`conformance_tests!`](crate::conformance_tests), which makes one named
//! test for each behaviour. Each behaviour is checked, and checked again after the log was closed and reopened.

#![allow(
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a failed expectation is how a behaviour fails its test"
)]

mod appends;
mod chain;
mod contents;
mod following;
mod keeping;
pub mod sample;
mod snapshots;

use std::sync::Arc;

use crate::EventLog;

pub use appends::*;
pub use chain::*;
pub use contents::*;
pub use following::*;
pub use keeping::*;
pub use snapshots::*;

/// One log under test, empty at the start.
pub trait Harness {
    fn log(&self) -> Arc<dyn EventLog>;

    /// Closes the log and opens it again, as a new process would. The caller holds no other handle.
    fn reopen(&mut self);
}

/// Checks now, and again after the log was reopened.
fn now_and_after_reopening(harness: &mut dyn Harness, check: impl Fn(&Arc<dyn EventLog>)) {
    check(&harness.log());
    harness.reopen();
    check(&harness.log());
}

/// One test for every behaviour. The argument is an expression that makes a [`Harness`](conformance::Harness).
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests! { @each $make;
            an_append_takes_the_places_after_the_expected_seq,
            a_wrong_seq_is_refused_and_changes_nothing,
            a_refused_append_does_not_stop_the_others_of_its_group,
            an_append_holds_one_to_five_hundred_events,
            events_that_stand_in_wrong_places_are_refused,
            a_resend_gets_the_first_answer_and_adds_nothing,
            a_scan_visits_the_events_from_a_place_on,
            a_scan_stops_when_the_visitor_breaks,
            a_visitor_may_write_to_the_log,
            an_operation_is_found_by_its_index,
            a_run_is_found_by_its_index,
            the_chain_links_every_event_to_the_one_before,
            unknown_event_types_are_stored_unchanged,
            racing_writers_leave_no_gap,
            followers_see_every_event_once_while_writers_race,
            waiting_for_events_ends_at_the_timeout,
            contents_of_every_size_come_back,
            a_part_of_a_content_is_that_part,
            contents_that_do_not_match_their_hash_are_refused,
            missing_and_purged_are_told_apart,
            collecting_keeps_what_is_named,
            collecting_keeps_what_is_staged,
            a_batch_of_a_hundred_thousand_files_is_one_event,
            the_newest_snapshot_at_or_before_a_place_is_found,
        }
    };
    (@each $make:expr; $($behaviour:ident,)*) => {
        $(
            #[test]
            fn $behaviour() {
                $crate::conformance::$behaviour(&mut $make);
            }
        )*
    };
}
