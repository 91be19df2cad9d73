//! Tests when a key is reconciled again, on tokio's paused clock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::tests::{Scripted, begun, exact};
use super::*;
use crate::leadership::Always;

#[tokio::test(start_paused = true)]
async fn failures_back_off_per_key_and_success_ends_it() {
    let times = begun(exact("test"), &["fails", "fine"], 600).await;
    assert_eq!(times["fails"], [0, 500, 1_500, 3_500]);
    assert_eq!(times["fine"], [0]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_nothing_ends_is_looked_at_more_and_more_rarely() {
    let times = begun(exact("test"), &["waits"], 200).await;
    assert_eq!(times["waits"], [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500, 63_500, 123_500, 183_500]);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_is_the_least_a_wait_or_a_failure_takes() {
    let times = begun(exact("test"), &["waits7s", "overloaded"], 60).await;
    assert_eq!(times["waits7s"], [0, 7_000, 14_000, 21_000, 28_000, 36_000, 52_000]);
    assert_eq!(times["overloaded"], [0, 7_000, 14_000]);
}

#[tokio::test(start_paused = true)]
async fn progress_begins_the_waits_anew() {
    let times = begun(exact("test"), &["steps"], 10).await;
    assert_eq!(times["steps"], [0, 500, 1_500, 3_500, 5_500, 6_000, 7_000, 9_000]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_help_itself_waits_for_a_change() {
    let times = begun(exact("test"), &["hopeless"], 3600).await;
    assert_eq!(times["hopeless"], [0]);
}

#[tokio::test(start_paused = true)]
async fn a_moment_that_is_known_is_not_missed_and_one_that_is_past_is_no_reason() {
    let times = begun(exact("test"), &["wakes", "expects", "missed"], 590).await;
    // The wall clock is real here: what passes of it until the loop asks is missing.
    for name in ["wakes", "expects"] {
        assert!(matches!(times[name][..], [0, 50_000..=100_000]), "{times:?}");
    }
    assert_eq!(times["missed"][..4], [0, 500, 1_500, 3_500]);
}

/// Adds a key every 10 ms, and returns when its reconciles began and when it was added last.
async fn woken(name: &str, times: u32) -> (Vec<u64>, u64) {
    let reconciler = Scripted::new();
    let begun = Arc::clone(&reconciler.begun);
    let (builder, stop) = (exact("test"), CancellationToken::new());
    let queue = builder.queue();
    let running = tokio::spawn(builder.run(reconciler, Always, stop.clone()));
    for _ in 0..times {
        queue.add(ObjectKey::cluster(name));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    // Quiet for a while: the next event is answered at once.
    queue.add(ObjectKey::cluster(name));
    tokio::time::sleep(Duration::from_millis(1)).await;
    stop.cancel();
    running.await.unwrap();
    let begun = begun.lock().unwrap()[name].clone();
    (begun, u64::from(times - 1) * 10)
}

#[tokio::test(start_paused = true)]
async fn who_is_woken_again_and_again_in_vain_is_held_back_and_misses_nothing() {
    for name in ["fine", "hopeless"] {
        let (begun, last) = woken(name, 1_000).await;
        let (after_quiet, burst) = begun.split_last().unwrap();
        let (free, held) = burst.split_at(8);
        assert_eq!(free, [0, 10, 20, 30, 40, 50, 60, 70], "{name}");
        assert_eq!(held, [2_000, 4_000, 6_000, 8_000, 10_000], "{name}");
        assert!(burst.last() > Some(&last), "the last event was answered");
        assert_eq!(*after_quiet, last + 10_010, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_gets_on_is_never_held_back() {
    let (begun, _) = woken("moves", 100).await;
    assert_eq!(begun.len(), 101);
}

#[tokio::test(start_paused = true)]
async fn a_few_events_in_a_row_are_answered_at_once() {
    let (begun, _) = woken("fine", 3).await;
    assert_eq!(begun, [0, 10, 20, 10_030]);
}
