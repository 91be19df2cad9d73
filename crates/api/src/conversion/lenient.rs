//! Reads typed values from objects that are almost right.
//!
//! A schema cannot say everything a Rust type says: a date-time with an odd offset, a number past 32 bits. One object
//! that fails to convert fails every LIST of its kind, so a value that cannot be read is set aside (its field alone,
//! not the object) and the rest is converted. The stash then keeps that value, like everything else that the other
//! version cannot express.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// So many values are set aside one by one; then their parents go, then the parents of those. Each round reads the
/// whole value anew, and a list of ten thousand odd items must not take ten thousand rounds.
const ROUNDS_PER_LEVEL: usize = 32;

/// Reads a value, removing what cannot be read; the default when nothing can.
pub(super) fn read<T: DeserializeOwned + Default>(raw: Value) -> T {
    let mut raw = raw;
    let mut rounds = 0;
    loop {
        match serde_path_to_error::deserialize(&raw) {
            Ok(value) => return value,
            // Every round removes one value, at last the whole, so that this ends.
            Err(error) if remove(&mut raw, error.path(), rounds / ROUNDS_PER_LEVEL) => rounds += 1,
            Err(_) => return T::default(),
        }
    }
}

/// Removes the value so many levels above a path; false when that is the root or cannot be followed.
fn remove(raw: &mut Value, path: &Path, levels_up: usize) -> bool {
    let segments: Vec<&Segment> = path.iter().collect();
    let kept = segments.len().saturating_sub(levels_up);
    let Some((last, parents)) = segments[..kept].split_last() else {
        return false;
    };
    let mut place = raw;
    for segment in parents {
        let next = match segment {
            Segment::Map { key } => place.get_mut(key),
            Segment::Seq { index } => place.get_mut(index),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        let Some(next) = next else { return false };
        place = next;
    }
    match (last, place) {
        (Segment::Map { key }, Value::Object(fields)) => fields.remove(key).is_some(),
        (Segment::Seq { index }, Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Outer {
        name: String,
        count: Option<i32>,
        #[serde(default)]
        items: Vec<Inner>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Inner {
        must: u8,
    }

    #[test]
    fn only_what_cannot_be_read_is_set_aside() {
        let raw = json!({"name": "a", "count": 5_000_000_000_i64, "items": [{"must": 1}, {}, {"must": "x"}, {"must": 3}]});
        let expected =
            Outer { name: "a".into(), count: None, items: vec![Inner { must: 1 }, Inner { must: 3 }] };
        assert_eq!(read::<Outer>(raw), expected);
    }

    #[test]
    fn many_unreadable_values_take_their_list_with_them() {
        let items: Vec<Value> = (0..20_000).map(|_| json!({ "must": -1 })).collect();
        let read: Outer = read(json!({ "name": "a", "items": items }));
        assert_eq!(read, Outer { name: "a".into(), count: None, items: vec![] });
    }

    #[test]
    fn nothing_readable_gives_the_default() {
        assert_eq!(read::<Outer>(json!({"name": 7})), Outer::default());
        assert_eq!(read::<Outer>(json!(["x"])), Outer::default());
        assert_eq!(read::<Outer>(Value::Null), Outer::default());
    }
}
