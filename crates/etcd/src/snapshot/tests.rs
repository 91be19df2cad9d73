use futures::stream;
use proptest::prelude::*;

use super::check::fixture::database;
use super::*;
use crate::{Call, Verb};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn origin() -> Origin {
    Origin {
        cluster: ClusterId::new(1),
        member: MemberId::new(2),
        revision: Revision::new(3),
        version: "3.6.16".to_owned(),
    }
}

/// As etcd sends it: pieces of the file, each with what remains of it, and the digest at last.
fn frames(bytes: &[u8], piece: usize) -> Vec<Result<Frame, Error>> {
    let (file, digest) = bytes.split_at(bytes.len() - 32);
    let mut sent = 0;
    let mut frames: Vec<_> = file
        .chunks(piece)
        .map(|chunk| {
            sent += chunk.len();
            Ok(frame(chunk, file.len() - sent))
        })
        .collect();
    frames.push(Ok(frame(digest, 0)));
    frames
}

fn frame(bytes: &[u8], remaining: usize) -> Frame {
    Frame {
        remaining: u64::try_from(remaining).unwrap(),
        storage_version: Some("3.6.0".to_owned()),
        bytes: Bytes::copy_from_slice(bytes),
    }
}

fn snapshot(frames: Vec<Result<Frame, Error>>) -> Snapshot {
    Snapshot::new(origin(), stream::iter(frames).boxed(), 1 << 20)
}

fn read(frames: Vec<Result<Frame, Error>>) -> Result<(Vec<u8>, Taken), Error> {
    let mut sink = Vec::new();
    let taken = block_on(snapshot(frames).copy_to(&mut sink))?;
    Ok((sink, taken))
}

#[test]
fn a_whole_snapshot_is_what_was_sent() {
    let bytes = database(3);
    let (sink, taken) = read(frames(&bytes, 1000)).unwrap();
    assert_eq!(sink, bytes);
    assert_eq!(taken.size, u64::try_from(bytes.len()).unwrap());
    assert_eq!(taken.storage_version.as_deref(), Some("3.6.0"));
    assert_eq!(taken.origin, origin());
}

#[test]
fn a_stream_that_ends_after_any_piece_is_cut_off() {
    let bytes = database(2);
    let whole = frames(&bytes, 1024).len();
    for kept in 0..whole {
        let mut cut = frames(&bytes, 1024);
        cut.truncate(kept);
        let error = read(cut).unwrap_err();
        assert!(matches!(error, Error::Snapshot(SnapshotFault::CutOff { .. })), "{kept}: {error}");
        assert!(error.is_retryable(), "another member may send all of it");
    }
}

#[test]
fn a_connection_that_breaks_is_not_an_end() {
    let mut cut = frames(&database(2), 1024);
    let call = Call { verb: Verb::Snapshot, about: "etcd-0".to_owned() };
    cut[3] = Err(Error::Lost { call, why: "reset".to_owned() });
    let mut snapshot = snapshot(cut);
    block_on(async {
        for _ in 0..3 {
            assert!(snapshot.next().await.unwrap().is_some());
        }
        let first = snapshot.next().await.unwrap_err();
        assert_eq!(snapshot.next().await.unwrap_err(), first, "it does not go on after an error");
        assert_eq!(snapshot.taken(), None);
    });
}

#[test]
fn a_changed_byte_is_noticed_wherever_it_is() {
    let bytes = database(1);
    for place in [0, 16, 17, 2000, 4095, 4096, 4127] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let error = read(frames(&changed, 777)).unwrap_err();
        assert!(
            matches!(error, Error::Snapshot(SnapshotFault::Damaged | SnapshotFault::NotASnapshot)),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_database_is_refused_at_its_first_bytes() {
    let mut page = frames(&database(4), 4096);
    page[0] = Ok(frame(&[b'<'; 4096], 3 * 4096));
    let mut snapshot = snapshot(page);
    let error = block_on(snapshot.next()).unwrap_err();
    assert_eq!(error, SnapshotFault::NotASnapshot.into());
}

#[test]
fn a_member_that_sends_more_than_it_told_or_allowed_is_stopped() {
    let bytes = database(2);
    let mut more = frames(&bytes, 4096);
    more.insert(1, Ok(frame(&[0; 4096], 4096)));
    assert_eq!(read(more).unwrap_err(), SnapshotFault::Damaged.into());

    let mut endless = frames(&bytes, 4096);
    endless.push(Ok(frame(&[0; 1], 0)));
    assert_eq!(read(endless).unwrap_err(), SnapshotFault::Damaged.into());

    let nothing = vec![Ok(frame(&[], 8192))];
    assert_eq!(read(nothing).unwrap_err(), SnapshotFault::Damaged.into());

    let huge = vec![Ok(frame(&bytes[..100], usize::MAX))];
    assert_eq!(read(huge).unwrap_err(), SnapshotFault::TooLarge { limit: 1 << 20 }.into());
}

proptest! {
    #[test]
    fn the_check_does_not_depend_on_how_bytes_are_cut(cuts in prop::collection::vec(1_usize..3000, 1..40)) {
        let bytes = database(2);
        let mut check = SnapshotCheck::default();
        let (mut rest, mut cuts) = (&bytes[..], cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            check.push(piece).unwrap();
            rest = others;
        }
        let mut at_once = SnapshotCheck::default();
        at_once.push(&bytes).unwrap();
        prop_assert_eq!(check.finish(None), at_once.finish(None));
    }

    #[test]
    fn no_part_of_a_snapshot_is_a_snapshot(length in 0_usize..(2 * 4096 + 32)) {
        let mut check = SnapshotCheck::default();
        check.push(&database(2)[..length]).unwrap();
        prop_assert!(check.finish(None).is_err());
    }
}
