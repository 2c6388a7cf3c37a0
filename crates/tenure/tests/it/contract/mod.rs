//! The tenure contract (`contract.md`): 37 rows, each written once in `rows` and run over each pair of backends.

mod rows;

/// Runs every row over a pair of backends, as `contract::<name>::<row>`.
macro_rules! contract_rows {
    ($name:ident, $pair:ty) => {
        mod $name {
            contract_rows! { @over $pair;
                handoff::h1_a_write_during_the_flush_is_refused_and_nothing_acknowledged_is_lost,
                handoff::h2_a_read_during_the_flush_is_refused_and_a_failed_flush_serves_again,
                handoff::h3_a_flush_that_outlasts_the_lease_is_fenced,
                handoff::h3b_successor_keeps_its_pin,
                handoff::h4_the_lease_is_renewed_while_work_drains,
                handoff::h5_failed_handoffs_leave_one_renewal_chain,
                handoff::h6_an_abandon_overtakes_a_draining_handoff,
                view::v1_nothing_obtained_through_the_view_outlives_the_deadline,
                view::v2_closing_the_view_leaves_the_routers_connection_open,
                view::v3_no_route_inside_yields_a_connection,
                view::t1_run_takes_a_synchronous_callback,
                forget::f1_an_upload_under_way_leaves_nothing_behind,
                forget::f2_a_snapshot_after_forget_began_is_refused,
                forget::f3_forget_beats_the_final_flush_of_a_handoff,
                forget::f4_the_lease_is_renewed_while_forget_waits_for_a_slow_upload,
                forget::f5_calls_are_refused_while_forget_waits,
                forget::f6_neither_abandon_nor_a_second_forget_disturbs_a_forget,
                forget::f7_forget_deletes_only_at_or_below_its_own_floor,
                forget::f8_closing_the_router_waits_for_a_forget,
                sweep::s1_a_late_upload_into_a_dead_epoch_is_swept_beside_the_next_open,
                sweep::s2_a_failed_sweep_does_not_fail_the_open,
                paths::p1_forget_refuses_a_root_that_is_not_the_tenants_own,
                paths::p2_a_prefix_ends_on_a_segment,
                paths::p3_a_shared_state_root_leaves_the_older_writer_an_unlinked_file,
                paths::p4_the_directory_that_was_checked_is_the_one_that_goes,
                drain::d1_a_drain_that_never_ends_is_bounded,
                drain::d2_a_stuck_tenant_holds_nobody_else,
                drain::d3_abandon_settles_a_handoff_that_waits_for_ever,
                drain::d3_forget_settles_a_handoff_that_waits_for_ever,
                drain::d3_lost_settles_a_handoff_that_waits_for_ever,
                drain::d4_calls_are_refused_while_running_work_ends_and_is_flushed,
                drain::d5_a_tenant_being_abandoned_refuses_calls_and_ends_once,
                drain::d6_drain_options_are_checked_and_one_lane_closes_in_order,
                renewal::r1_a_failed_handoff_starts_no_second_chain,
                observer::o1_an_observer_that_panics_harms_no_tenure,
                local::l1_a_flushed_ledger_is_gone_and_an_abandoned_one_is_kept,
                local::l2_the_durable_copy_is_the_authority,
            }
        }
    };
    (@over $pair:ty; $($file:ident :: $row:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $row() {
                Box::pin(super::rows::$file::$row::<$pair>()).await;
            }
        )*
    };
}

contract_rows!(embedded, leasehold_testkit::EmbeddedPair);
contract_rows!(cloud, leasehold_testkit::CloudPair);
