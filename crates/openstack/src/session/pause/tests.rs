use super::*;
use crate::Refusal;

fn call(verb: Verb, service: Service) -> Call {
    Call { verb, service, kind: "thing", name: None, id: None }
}

fn refused(call: &Call, status: u16, kind: RefusalKind, retry_after: Option<u64>) -> Error {
    Error::Refused(Box::new(Refusal {
        call: call.clone(),
        status,
        kind,
        fault: None,
        message: "busy".to_owned(),
        request_id: None,
        retry_after: retry_after.map(Duration::from_secs),
    }))
}

fn timed_out(call: &Call) -> Error {
    Error::TimedOut { call: call.clone(), limit: Duration::from_secs(10) }
}

/// How long the call would have to wait, without sending it.
fn wait(pauses: &Pauses, call: &Call) -> Option<Duration> {
    pauses.admit(call).err().map(|error| error.retry_after().unwrap())
}

fn fail(pauses: &Pauses, call: &Call, times: u32) {
    for _ in 0..times {
        pauses.admit(call).ok().unwrap().settle(Some(&timed_out(call)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_service_asks_for_holds_for_all_calls() {
    let pauses = Pauses::default();
    let list = call(Verb::List, Service::Compute);
    let create = call(Verb::Create, Service::Network);
    let error = refused(&list, 429, RefusalKind::RateLimited, Some(40));
    pauses.admit(&list).ok().unwrap().settle(Some(&error));
    let told = pauses.admit(&create).err().unwrap();
    assert_eq!(told.retry_after(), Some(Duration::from_secs(40)));
    assert_eq!(told.to_string(), "create network thing: busy (429)");
    assert_eq!((told.category(), told.is_lost(), told.is_retryable()), ("RateLimited", false, true));
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(wait(&pauses, &list), Some(Duration::from_secs(10)));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!((wait(&pauses, &list), wait(&pauses, &create)), (None, None));
}

#[tokio::test(start_paused = true)]
async fn nobody_can_silence_a_session_for_good() {
    let pauses = Pauses::default();
    let write = call(Verb::Delete, Service::Network);
    let error = refused(&write, 503, RefusalKind::Unavailable, Some(1 << 40));
    pauses.admit(&write).ok().unwrap().settle(Some(&error));
    assert_eq!(wait(&pauses, &write), Some(LONGEST_ASKED));
}

#[tokio::test(start_paused = true)]
async fn a_series_without_answers_pauses_that_service_longer_each_time() {
    let pauses = Pauses::default();
    let read = call(Verb::Get, Service::Network);
    fail(&pauses, &read, SERIES);
    let mut waited = Vec::new();
    for _ in 0..7 {
        let length = wait(&pauses, &read).unwrap();
        waited.push(length.as_secs());
        for other in [call(Verb::Create, Service::Network), call(Verb::Get, Service::Compute)] {
            assert_eq!(wait(&pauses, &other), None, "others have a series of their own");
        }
        tokio::time::advance(length).await;
        fail(&pauses, &read, 1);
    }
    assert_eq!(waited, [2, 4, 8, 16, 32, 60, 60]);
    tokio::time::advance(LONGEST_PAUSE).await;
    pauses.admit(&read).ok().unwrap().settle(None);
    fail(&pauses, &read, SERIES - 1);
    assert_eq!(wait(&pauses, &read), None, "an answer begins a new series");
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_finds_out_whether_the_service_is_back() {
    let pauses = Pauses::default();
    let read = call(Verb::Get, Service::Network);
    fail(&pauses, &read, SERIES);
    tokio::time::advance(FIRST_PAUSE).await;
    let probe = pauses.admit(&read).ok().unwrap();
    assert!((0..100).all(|_| wait(&pauses, &read).is_some()));
    drop(probe);
    let probe = pauses.admit(&read).ok().unwrap();
    probe.settle(None);
    assert!((0..100).all(|_| wait(&pauses, &read).is_none()));
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_about_the_service_is_not_held_against_it() {
    let pauses = Pauses::default();
    let write = call(Verb::Create, Service::Compute);
    let login = call(Verb::Authenticate, Service::Identity);
    for _ in 0..SERIES * 2 {
        let stopped = Error::Stopped { call: write.clone(), why: "not the leader" };
        let broken = refused(&write, 500, RefusalKind::Broken, None);
        let without_login = refused(&login, 429, RefusalKind::RateLimited, None);
        for error in [stopped, broken, timed_out(&login), without_login] {
            pauses.admit(&write).ok().unwrap().settle(Some(&error));
        }
    }
    assert_eq!(wait(&pauses, &write), None);
}
