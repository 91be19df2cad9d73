use super::*;

fn session(region: &str) -> (Fingerprint, Session) {
    let yaml = "clouds: {c: {auth: {auth_url: 'http://127.0.0.1:1', token: t}}}";
    let config = CloudConfig::from_yaml(yaml.as_bytes(), "c").unwrap().with_region(region);
    (config.fingerprint(), Session::new(config, SessionOptions::default()).unwrap())
}

fn key(region: &str) -> Key {
    ("ns".to_owned(), "secret".to_owned(), "c".to_owned(), region.to_owned())
}

fn keep(state: &mut State, region: &str) {
    let (fingerprint, session) = session(region);
    state.keep(key(region), "1".to_owned(), fingerprint, || Project::new(session, Arc::default()));
}

/// The region is free text: whoever writes a new one each time must not fill the memory.
#[tokio::test(start_paused = true)]
async fn of_too_many_ways_the_one_taken_longest_ago_goes() {
    let mut state = State::default();
    keep(&mut state, "first");
    for index in 0..2 * MOST_IDENTITIES {
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(state.known(&key("first"), "1").is_some(), "it is in use");
        keep(&mut state, &index.to_string());
    }
    assert_eq!((state.identities.len(), state.projects.len()), (MOST_IDENTITIES, MOST_IDENTITIES));
    assert!(state.known(&key("0"), "1").is_none());
    assert!(state.known(&key("first"), "2").is_none(), "the Secret has changed");
}

#[tokio::test(start_paused = true)]
async fn who_has_the_most_ways_loses_them_and_nobody_else_does() {
    let mut state = State::default();
    let (fingerprint, made) = session("other");
    let other: Key = ("other".to_owned(), "secret".to_owned(), "c".to_owned(), String::new());
    state.keep(other.clone(), "1".to_owned(), fingerprint, || Project::new(made, Arc::default()));
    for index in 0..2 * MOST_IDENTITIES {
        tokio::time::advance(Duration::from_millis(1)).await;
        keep(&mut state, &index.to_string());
    }
    assert_eq!(state.identities.len(), MOST_IDENTITIES);
    assert!(state.known(&other, "1").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_way_that_nobody_takes_is_dropped() {
    let mut state = State::default();
    keep(&mut state, "left");
    keep(&mut state, "taken");
    for _ in 0..4 {
        tokio::time::advance(UNUSED / 3).await;
        assert!(state.known(&key("taken"), "1").is_some());
    }
    assert_eq!((state.identities.len(), state.projects.len()), (1, 1));
}
