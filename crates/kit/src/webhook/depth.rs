//! Reviews that nest deeply.
//!
//! Reading, comparing, writing and dropping JSON is recursion, and a stack that ends takes the whole manager with it.
//! serde's own limit of 128 levels is safe and too small: one object that is stored with more would fail every LIST that
//! has to be converted, for everybody, and nobody could mend it. API servers read up to 10 000 levels
//! (`maxNestingDepth` of their decoder), so a review has hardly more. One that is deep is answered in a thread whose
//! stack is large enough for that, one at a time; one that is deeper still comes from no API server and is not read.

use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

/// Below serde's own limit, whatever is built around an object while it is judged.
const SHALLOW: usize = 100;
/// What an API server reads, and the levels of the review and of managedFields around it.
const DEEPEST: usize = 10_016;
/// Fifty KiB for each level, which is enough without optimisation too, as a test of the manager's handlers shows. Only
/// pages that are used take memory.
const STACK: usize = 512 << 20;

/// So that a flood of deep reviews takes the memory of one stack.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Works on a body, with enough stack for its depth. Fails, saying why, for one that is too deep.
pub(super) fn with_stack<T: Send>(body: &[u8], work: impl FnOnce() -> T + Send) -> Result<T, String> {
    match levels(body) {
        0..=SHALLOW => Ok(work()),
        levels if levels <= DEEPEST => {
            let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().name("deep-review".to_owned()).stack_size(STACK);
                let thread = thread.spawn_scoped(scope, work).map_err(|error| error.to_string())?;
                thread.join().map_err(|_| super::handlers::PANICKED.to_owned())
            })
        }
        levels => Err(format!("nested {levels} levels deep: no API server sends more than 10000")),
    }
}

/// Reads JSON at any depth: the caller has the stack for it.
pub(super) fn read<'text, T: Deserialize<'text>>(text: &'text [u8]) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// How deeply objects and lists are nested in a text, without recursion. For what is no JSON the number means nothing,
/// and its reader stops where that becomes clear.
fn levels(text: &[u8]) -> usize {
    let (mut levels, mut deepest) = (0_usize, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => {
                levels += 1;
                deepest = deepest.max(levels);
            }
            b'}' | b']' if !is_text => levels = levels.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_outside_of_texts() {
        assert_eq!(levels(br#"{"a":[{"b":"}]\"[[[["}],"c":{}}"#), 3);
        assert_eq!(levels(b"1"), 0);
        assert_eq!(levels(b"[[[["), 4);
    }
}
