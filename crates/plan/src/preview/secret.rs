//! Decides what of a Secret may be shown: its keys and whether they change; for a planned Secret, its intents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::Difference;

/// Where kubectl keeps what people gave.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How intents begin.
const INTENT: &str = "<to be minted: ";

/// Differences as they may be printed: that the content of a Secret changes, not how.
pub(super) fn told(kind: &str, mut differences: Vec<Difference>) -> Vec<Difference> {
    let is_content = |path: &str| ["data", "stringData"].iter().any(|field| path.starts_with(field));
    for difference in
        differences.iter_mut().filter(|difference| kind == Secret::KIND && is_content(&difference.path))
    {
        for value in difference.old.iter_mut().chain(&mut difference.new) {
            *value = json!("<not shown>");
        }
    }
    if kind == Secret::KIND {
        differences.retain(|difference| !difference.path.contains(LAST_APPLIED));
        for value in differences.iter_mut().flat_map(|found| found.old.iter_mut().chain(&mut found.new)) {
            strip(value);
        }
    }
    differences
}

/// Takes away what kubectl keeps, also where all annotations are new at once.
fn strip(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(LAST_APPLIED);
        fields.values_mut().for_each(strip);
    }
}

/// An object as it may be printed: of Secrets, intents and lengths instead of content.
pub fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
        return object;
    }
    // What people gave may stand there once more, in plain text.
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    for field in ["data", "stringData"] {
        for (_, value) in object[field].as_object_mut().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            let content =
                if field == "data" { STANDARD.decode(text).unwrap_or_default() } else { text.into() };
            let intent = std::str::from_utf8(&content).ok().filter(|text| text.starts_with(INTENT));
            *value = match intent {
                Some(intent) => json!(intent),
                None => json!(format!("<not shown: {} bytes>", content.len())),
            };
        }
        if object[field].is_null()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove(field);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_content_of_a_secret_is_shown() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "s", "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" } },
            "data": { "key": STANDARD.encode("hunter2"), "new": STANDARD.encode("<to be minted: a key>") },
            "stringData": { "plain": "hunter2" },
        });
        let shown = shown(&secret);
        assert!(
            !shown.to_string().contains("hunter2")
                && !shown.to_string().contains(&STANDARD.encode("hunter2"))
        );
        assert_eq!(shown["data"]["new"], "<to be minted: a key>");
        let bare = json!({"metadata": {"name": "s"}});
        let differences = told("Secret", super::super::between(&bare, &secret));
        assert!(!serde_json::to_string(&differences).unwrap().contains("hunter2"), "{differences:?}");
        assert!(shown["data"]["key"].as_str().unwrap().starts_with("<not shown: 7 bytes"));
    }
}
