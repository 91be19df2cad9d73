//! What reads text from outside, each as a function that takes any bytes.
//!
//! A target fails by a panic: from the code that it calls, or because something that must hold for every input does not
//! hold. `cargo xtask fuzz` makes inputs; the test `corpus` reads again what was once worth keeping.

mod targets;

pub use targets::TARGETS;

/// One way in.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of the directory of its corpus.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
