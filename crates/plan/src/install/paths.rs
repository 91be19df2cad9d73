//! The webhooks' paths in objects that are installed already.
//!
//! The manager writes a token before each handler's path (`hangar_kit::webhook`). To install again must not take it away:
//! until the manager has put it back, every call of a webhook would fail.

use serde_json::Value;

/// The object with the paths that the live one has, where they lead to the same handler of the same target.
#[must_use]
pub fn keeping_paths(mut desired: Value, live: &Value) -> Value {
    const CONVERSION: &str = "/spec/conversion/webhook/clientConfig";
    if let (Some(wanted), Some(present)) = (desired.pointer_mut(CONVERSION), live.pointer(CONVERSION)) {
        keep(wanted, present);
    }
    let present = live.get("webhooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let wanted = desired.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten();
    for webhook in wanted {
        let same = present.iter().find(|present| present["name"] == webhook["name"]);
        if let (Some(same), Some(config)) = (same, webhook.get_mut("clientConfig")) {
            keep(config, &same["clientConfig"]);
        }
    }
    desired
}

fn keep(wanted: &mut Value, present: &Value) {
    for field in ["/url", "/service/path"] {
        let Some(Value::String(text)) = wanted.pointer_mut(field) else { continue };
        let Some(kept) = present.pointer(field).and_then(Value::as_str) else { continue };
        let (base, handler) = text.rsplit_once('/').unwrap_or(("", text));
        let token =
            kept.strip_prefix(&format!("{base}/")).and_then(|rest| rest.strip_suffix(&format!("/{handler}")));
        if token.is_some_and(|token| !token.contains('/')) {
            kept.clone_into(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_stays_while_it_leads_to_the_same_handler() {
        let configuration = |path: &str| {
            json!({ "webhooks": [
            { "name": "a", "clientConfig": { "service": { "name": "s", "path": path } } },
        ] })
        };
        let definition = |url: &str| json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "url": url } } } } });
        let (plain, live) = (configuration("/mutate"), configuration("/t0ken/mutate"));
        assert_eq!(keeping_paths(plain.clone(), &live), live);
        for other in ["/t0ken/validate", "/mutate", "/a/b/mutate", "mutate"] {
            assert_eq!(keeping_paths(plain.clone(), &configuration(other)), plain, "{other}");
        }
        let plain = definition("https://192.0.2.1:9443/convert");
        let live = definition("https://192.0.2.1:9443/t0ken/convert");
        assert_eq!(keeping_paths(plain.clone(), &live), live);
        assert_eq!(keeping_paths(plain.clone(), &definition("https://192.0.2.2:9443/t0ken/convert")), plain);
        assert_eq!(keeping_paths(plain.clone(), &json!({})), plain);
    }
}
