//! Every input that was worth keeping once more, and changes of it by chance: what CI can afford of fuzzing.

use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

#[test]
fn every_input_of_the_corpus_is_taken() {
    for target in hangar_fuzz::TARGETS {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let mut inputs = 0;
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            (target.run)(&std::fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{} has no corpus", target.name);
    }
}

/// Changes of all inputs of a target. The seed is fixed: a failure comes again.
const CHANGED: usize = 4_000;

/// What parsers stumble over.
const ODD: [&[u8]; 12] = [
    b"{",
    b"[",
    b"\"",
    b"null",
    b"-1",
    b"3000000000",
    b"1e400",
    b"9999-12-31T23:59:59+99:99",
    b"\\ud800",
    b"\n---\n",
    b"&a [*a]",
    "\u{feff}\u{202e}é".as_bytes(),
];

fn changed(input: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..=16)).min(bytes.len());
        match random.random_range(0..5) {
            0 => drop(bytes.splice(at..end, ODD[random.random_range(0..ODD.len())].iter().copied())),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].repeat(random.random_range(1..50));
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
        }
    }
    bytes
}

#[test]
fn changes_of_the_corpus_are_taken() {
    for target in hangar_fuzz::TARGETS {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let mut paths: Vec<_> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let inputs: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        let mut random = StdRng::seed_from_u64(1);
        for number in 0..CHANGED {
            let input = changed(&inputs[number % inputs.len()], &mut random);
            let taken = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(taken.is_ok(), "{} does not take {:?}", target.name, String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(hangar_fuzz::target(&name).is_some(), "no target reads corpus/{name}");
    }
}
