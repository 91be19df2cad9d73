//! Every input that was worth keeping, once more.

use std::path::Path;

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

#[test]
fn every_corpus_has_a_target() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(hangar_fuzz::target(&name).is_some(), "no target reads corpus/{name}");
    }
}
