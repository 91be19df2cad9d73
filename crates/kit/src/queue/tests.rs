//! Tests what the queue guarantees, on tokio's paused clock.

use super::*;

async fn idle(queue: &WorkQueue<&'static str>) -> bool {
    tokio::time::timeout(Duration::from_millis(1), queue.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_key_runs_once_however_often_it_is_added() {
    let queue = WorkQueue::default();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
    assert!(idle(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_in_work_waits_for_its_end_and_runs_once_more() {
    let queue = WorkQueue::default();
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    queue.add("a");
    queue.add("a");
    assert!(idle(&queue).await);
    queue.done(&"a");
    assert_eq!(queue.next().await, "a");
    queue.done(&"a");
    assert!(idle(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn the_earliest_timer_wins_and_work_cancels_it() {
    let queue = WorkQueue::default();
    let start = Instant::now();
    queue.add_after("a", Duration::from_mins(1));
    queue.add_after("a", Duration::from_secs(5));
    queue.add_after("a", Duration::from_secs(30));
    assert_eq!(queue.next().await, "a");
    assert_eq!(start.elapsed().as_secs(), 5);
    queue.done(&"a");
    assert_eq!(queue.timers(), 0);
    queue.add_after("a", Duration::from_secs(5));
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    assert_eq!((start.elapsed().as_secs(), queue.timers()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_taker_is_woken_by_an_earlier_wish() {
    let queue = WorkQueue::default();
    let start = Instant::now();
    queue.add_after("late", Duration::from_mins(1));
    let taker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add_after("early", Duration::from_secs(2));
    assert_eq!(taker.await.unwrap(), "early");
    assert_eq!(start.elapsed().as_secs(), 3);
}

fn lane(key: &&'static str) -> Lane {
    let (share, _) = key.split_once('-').unwrap_or((key, ""));
    Lane { share: share.to_owned(), namespace: "ns".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn shares_take_turns_and_each_keeps_its_order() {
    let queue = WorkQueue::default();
    for key in ["a-1", "a-2", "a-3", "b-1", "c-1", "b-2"] {
        queue.add(key);
    }
    // Known late: what waits already is filed anew.
    queue.limit(Limits { at_once: 9, per_share: 9, per_namespace: 9 }, lane);
    let mut order = Vec::new();
    while queue.depth() > 0 {
        order.push(queue.next().await);
    }
    assert_eq!(order, ["a-1", "b-1", "c-1", "a-2", "b-2", "a-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_share_is_passed_over_and_goes_on_when_there_is_room() {
    let queue = WorkQueue::default();
    queue.limit(Limits { at_once: 9, per_share: 1, per_namespace: 3 }, lane);
    for key in ["a-1", "a-2", "b-1", "c-1", "d-1"] {
        queue.add(key);
    }
    assert_eq!([queue.next().await, queue.next().await, queue.next().await], ["a-1", "b-1", "c-1"]);
    assert!(idle(&queue).await, "one share and the namespace are full");
    queue.done(&"b-1");
    assert_eq!(queue.next().await, "d-1");
    queue.done(&"a-1");
    assert_eq!((queue.next().await, queue.depth()), ("a-2", 0));
}

#[tokio::test(start_paused = true)]
async fn there_is_room_as_soon_as_somebody_is_slow() {
    let queue = WorkQueue::default();
    queue.limit(Limits { at_once: 1, per_share: 1, per_namespace: 9 }, lane);
    let start = Instant::now();
    queue.add("a-1");
    queue.add("b-1");
    assert_eq!((queue.next().await, queue.next().await, start.elapsed()), ("a-1", "b-1", SLOW));
    assert_eq!(queue.slow(), 1);
    queue.done(&"a-1");
    assert_eq!(queue.slow(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_given_back_comes_again_in_time() {
    let queue = WorkQueue::default();
    let start = Instant::now();
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    queue.add("a");
    queue.postpone("a", Duration::from_secs(3));
    assert_eq!(queue.depth(), 1);
    assert_eq!((queue.next().await, start.elapsed().as_secs()), ("a", 3));
}
