//! libFuzzer around one target, which the variable `HANGAR_FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("HANGAR_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = hangar_fuzz::target(&name) else {
        eprintln!("error: HANGAR_FUZZ_TARGET={name:?} names no target");
        std::process::exit(2);
    };
    target.run
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| RUN(input));
