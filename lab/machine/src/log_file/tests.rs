use super::*;

const LINE: usize = 100;

/// Numbered lines, so that a hole, a double and a wrong order are seen.
fn lines(numbers: std::ops::Range<usize>) -> Vec<u8> {
    let width = LINE - 1;
    numbers.flat_map(|number| format!("{number:0width$}\n").into_bytes()).collect()
}

/// What is in it, as the numbers of the first and of the line after the last.
fn read(path: &Path) -> std::ops::Range<usize> {
    let mut text = String::new();
    for mut part in open_parts(path).unwrap() {
        part.read_to_string(&mut text).unwrap();
    }
    let numbers: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    let first = numbers[0];
    for (index, number) in numbers.iter().enumerate() {
        assert_eq!(*number, first + index, "after {index} lines");
    }
    first..first + numbers.len()
}

fn sizes(path: &Path) -> Vec<u64> {
    let parts = (0..=OLDER + 1).map(|age| if age == 0 { path.to_owned() } else { older(path, age) });
    parts.filter_map(|part| fs::metadata(part).ok()).map(|found| found.len()).collect()
}

/// Lines of a full file.
fn full() -> usize {
    usize::try_from(LARGEST).unwrap() / LINE + 1
}

#[test]
fn parts_are_bounded_and_end_with_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubelet.log");
    let mut log = LogFile::open(path.clone());
    let all = 7 * full();
    // In pieces that end anywhere.
    for piece in lines(0..all).chunks(65_521) {
        log.append(piece);
        assert!(sizes(&path).iter().all(|size| *size <= LARGEST + LINE as u64), "{:?}", sizes(&path));
    }
    assert_eq!(sizes(&path).len(), 1 + OLDER as usize);
    let kept = read(&path);
    assert_eq!(kept.end, all);
    assert!(kept.len() > 4 * (full() - 1), "only {} lines are kept", kept.len());
    let mut names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["kubelet.1.log", "kubelet.2.log", "kubelet.3.log", "kubelet.4.log", "kubelet.log"]);
    for name in &names {
        assert!(fs::read(directory.path().join(name)).unwrap().ends_with(b"\n"), "{name} ends within a line");
    }
}

/// Killed after each single rename: no line that was there before is lost that would not have been lost anyway.
#[test]
fn a_writer_may_be_killed_between_renames() {
    for renames in 0..=OLDER {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let mut log = LogFile::open(path.clone());
        log.append(&lines(0..5 * full()));
        drop(log);
        let before = read(&path);
        let steps = (1..OLDER).rev().chain([0]);
        for age in steps.take(renames as usize) {
            let from = if age == 0 { path.clone() } else { older(&path, age) };
            fs::rename(from, older(&path, age + 1)).unwrap();
        }
        // The first rename is what drops the oldest part.
        let kept = read(&path);
        assert_eq!(kept.end, before.end, "after {renames} renames");
        assert!(kept.len() > 3 * full(), "after {renames} renames");
        let mut log = LogFile::open(path.clone());
        log.append(&lines(before.end..before.end + 2 * full()));
        assert_eq!(read(&path).end, before.end + 2 * full(), "after {renames} renames");
        assert!(read(&path).len() > 3 * full(), "after {renames} renames");
        assert!(sizes(&path).len() <= 1 + OLDER as usize);
    }
}

#[test]
fn a_writer_killed_within_a_line_does_not_spoil_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.log");
    LogFile::open(path.clone()).append(b"one\nhal");
    LogFile::open(path.clone()).append(b"two\n");
    LogFile::open(path.clone()).append(b"three\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nhal\ntwo\nthree\n");
}

#[test]
fn a_line_without_end_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.log");
    let mut log = LogFile::open(path.clone());
    let piece = vec![b'x'; 1 << 16];
    for _ in 0..8 * LARGEST / piece.len() as u64 {
        log.append(&piece);
    }
    let most = LARGEST + LONGEST_LINE + piece.len() as u64;
    assert!(sizes(&path).iter().all(|size| *size <= most), "{:?}", sizes(&path));
    assert_eq!(sizes(&path).len(), 1 + OLDER as usize);
}

#[test]
fn what_could_not_be_written_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.log");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut log = LogFile::open(path.clone());
    log.append(b"lost\n");
    log.append(b"this too\n");
    // The disk has space again.
    fs::remove_file(&path).unwrap();
    log.reopen();
    log.append(b"kept\n");
    log.append(b"kept too\n");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, "\n[14 bytes of this log could not be written]\nkept\nkept too\n");
}

/// A reader during rotations sees an unbroken end of the log, each time.
#[test]
fn reading_meets_rotations() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.log");
    let mut log = LogFile::open(path.clone());
    log.append(&lines(0..10));
    let (all, pieces) = (20 * full(), 200);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for piece in 0..pieces {
                let (from, to) = (piece * all / pieces, (piece + 1) * all / pieces);
                log.append(&lines(from.max(10)..to.max(10)));
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let mut text = String::new();
            for mut part in open_parts(&path).unwrap() {
                part.read_to_string(&mut text).unwrap();
            }
            // The newest may end within what is being written.
            let end = text.rfind('\n').unwrap_or_default();
            let mut numbers = text[..end].lines().map(|line| line.parse::<usize>().unwrap());
            let mut before = numbers.next().unwrap();
            for number in numbers {
                assert_eq!(number, before + 1);
                before = number;
            }
            assert!(before >= last, "it went back from {last} to {before}");
            last = before;
        }
    });
    assert_eq!(read(&path).end, all);
}

#[test]
fn names_of_older_parts_are_taken() {
    for name in ["a.1.log", "a.b.12.log", "a.3"] {
        assert!(is_older_name(name), "{name}");
    }
    for name in ["a.log", "a1.log", "a.b.log", "1.log", "a"] {
        assert!(!is_older_name(name), "{name}");
    }
}
