//! Provider ids of two objects, one per line.

use hangar_plan::machine::node::is_same_server;

use super::text;

pub(super) fn run(input: &[u8]) {
    let Some((left, right)) = text(input).and_then(|text| text.split_once('\n')) else { return };
    assert_eq!(is_same_server(left, right), is_same_server(right, left));
    assert!(left.is_empty() || is_same_server(left, left));
    assert!(!is_same_server("", right));
}
