//! Tests what one hanging tenant or cloud may cost others, on tokio's paused clock.

use super::tests::{begun, exact, run};
use super::*;

fn keys(namespaces: usize, count: usize, name: &str) -> Vec<ObjectKey> {
    let key =
        |namespace, number| ObjectKey::namespaced(format!("ns-{namespace}"), format!("{name}-{number}"));
    (0..namespaces).flat_map(|namespace| (0..count).map(move |number| key(namespace, number))).collect()
}

/// How often a key of a share of its own ran beside others, from a moment on.
async fn ticks_beside(others: Vec<ObjectKey>, from: u64) -> usize {
    let alone = ObjectKey::namespaced("alone", "ticks");
    let (times, _) = run(exact("test"), others.into_iter().chain([alone]), 200).await;
    times["ticks"].iter().filter(|began| **began >= from).count()
}

#[tokio::test(start_paused = true)]
async fn a_share_that_hangs_takes_its_third_and_delays_nobody() {
    let alone = ticks_beside(Vec::new(), 0).await;
    assert_eq!(alone, 200);
    assert_eq!(ticks_beside(keys(1, 50, "hangs"), 0).await, alone);
    let (times, most) = run(exact("test"), keys(1, 50, "hangs"), 60).await;
    assert_eq!((times.len(), most), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn twenty_shares_that_hang_delay_nobody_once_that_is_known() {
    // Twenty first reconciles take the ten workers for a second each.
    let alone = ticks_beside(Vec::new(), 2_000).await;
    assert_eq!(ticks_beside(keys(20, 50, "hangs"), 2_000).await, alone);
    let (_, most) = run(exact("test"), keys(20, 50, "hangs"), 60).await;
    assert_eq!(most, 60);
}

#[tokio::test(start_paused = true)]
async fn shares_that_hang_again_and_again_delay_nobody_once_that_is_known() {
    let alone = ticks_beside(Vec::new(), 5_000).await;
    assert_eq!(ticks_beside(keys(40, 50, "hangs10s"), 5_000).await, alone);
}

#[tokio::test(start_paused = true)]
async fn a_share_that_is_only_slow_goes_on() {
    let (times, _) = run(exact("test"), keys(40, 6, "slow"), 600).await;
    assert_eq!(times.len(), 6);
    assert!(times.values().all(|began| began.len() == 40), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn what_only_waits_for_somebody_else_is_no_worker() {
    let times = begun(exact("test").concurrency(1), &["slow", "fine"], 60).await;
    assert_eq!((&times["slow"][..], &times["fine"][..]), (&[0][..], &[1_000][..]));
}

#[tokio::test(start_paused = true)]
async fn a_share_is_what_the_controller_says_and_a_namespace_has_its_limit_too() {
    let builder = || exact("test").share(|key| key.name.clone());
    let alone = ObjectKey::namespaced("alone", "ticks");
    let (times, most) = run(builder(), keys(1, 50, "hangs").into_iter().chain([alone]), 60).await;
    assert_eq!((times.len(), most), (21, 21));
    let one = exact("test").share(|_| "cloud".to_owned());
    let (times, most) = run(one, keys(50, 1, "hangs"), 60).await;
    assert_eq!((times["hangs-0"].len(), most), (3, 3));
}
