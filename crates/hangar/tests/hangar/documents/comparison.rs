//! Checks that every field that was written is still there when read.

use serde_json::Value;

/// The fields of `written` that `read` lacks or has otherwise. More fields are fine: defaults, and what the API server
/// keeps; more elements in a list are not.
pub(super) fn lost(written: &Value, read: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", written, read, &mut found);
    found
}

fn compare(path: &str, written: &Value, read: &Value, found: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let path = format!("{path}.{key}");
                match read.get(key) {
                    Some(other) => compare(&path, value, other, found),
                    None => found.push(format!("{path} is gone")),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) if written.len() == read.len() => {
            for (index, (value, other)) in written.iter().zip(read).enumerate() {
                compare(&format!("{path}[{index}]"), value, other, found);
            }
        }
        (written, read) if written == read => {}
        (written, read) => found.push(format!("{path} is {read}, not {written}")),
    }
}

#[test]
fn a_loss_is_named_and_a_default_is_none() {
    let written = serde_json::json!({ "a": { "b": [1, { "c": "" }] }, "d": null });
    let read = serde_json::json!({ "a": { "b": [1, { "c": "", "default": true }] }, "d": null, "uid": "x" });
    assert_eq!(lost(&written, &read), [""; 0]);
    let read = serde_json::json!({ "a": { "b": [1, { "c": "x" }] } });
    assert_eq!(lost(&written, &read), [".a.b[1].c is \"x\", not \"\"", ".d is gone"]);
    let read = serde_json::json!({ "a": { "b": [1, { "c": "" }, 2] }, "d": null });
    assert_eq!(lost(&written, &read).len(), 1);
}
