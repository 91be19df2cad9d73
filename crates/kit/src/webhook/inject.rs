//! Computes the patch that writes our address and authority into a webhook configuration or a CRD. It is pure.
//!
//! The whole list of webhooks is written back as it was read, with only `clientConfig` replaced, and under the resource
//! version it was read at: a change by another client in between is a conflict and is not lost.

use serde_json::{Value, json};

use super::WebhookTarget;
use super::path::PathToken;

/// Objects we write into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Validating,
    Mutating,
    Definition,
}

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injection<'a> {
    pub(super) target: &'a WebhookTarget,
    pub(super) bundle: &'a str,
    /// Before each handler's path.
    pub(super) token: &'a PathToken,
    /// Where CRDs that name no path find their conversion.
    pub(super) conversion_path: &'a str,
}

impl Injection<'_> {
    /// The merge patch that makes `object` right; nothing if it is.
    pub(super) fn patch(&self, kind: Kind, object: &Value) -> Option<Value> {
        let mut patch = match kind {
            Kind::Validating | Kind::Mutating => self.configuration(object)?,
            Kind::Definition => self.definition(object)?,
        };
        // The uid keeps us from writing into a successor of the same name.
        patch["metadata"] = json!({
            "resourceVersion": object.pointer("/metadata/resourceVersion"),
            "uid": object.pointer("/metadata/uid"),
        });
        Some(patch)
    }

    fn configuration(&self, object: &Value) -> Option<Value> {
        let current = object.get("webhooks")?.as_array()?;
        let wanted: Vec<Value> = current
            .iter()
            .map(|webhook| {
                let mut webhook = webhook.clone();
                // Without a path there is no telling which handler is meant: left for its author.
                if let Some(handler) = webhook.get("clientConfig").and_then(WebhookTarget::handler_of) {
                    webhook["clientConfig"] =
                        self.target.client_config(&self.token.before(&handler), self.bundle);
                }
                webhook
            })
            .collect();
        (*current != wanted).then(|| json!({ "webhooks": wanted }))
    }

    fn definition(&self, object: &Value) -> Option<Value> {
        let versions = object.pointer("/spec/versions").and_then(Value::as_array).map_or(0, Vec::len);
        let current = object.pointer("/spec/conversion").unwrap_or(&Value::Null);
        if versions < 2 && current["strategy"] != "Webhook" {
            return None;
        }
        let client_config = current.pointer("/webhook/clientConfig").unwrap_or(&Value::Null);
        let handler = WebhookTarget::handler_of(client_config);
        let path = self.token.before(handler.as_deref().unwrap_or(self.conversion_path));
        let wanted = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": self.target.client_config(&path, self.bundle),
                "conversionReviewVersions": ["v1"],
            },
        });
        if *current == wanted {
            return None;
        }
        let mut patch = json!({ "spec": { "conversion": wanted } });
        // A merge patch leaves what it does not name: the other kind of address must go.
        for other in ["url", "service"] {
            let config = &mut patch["spec"]["conversion"]["webhook"]["clientConfig"];
            if config.get(other).is_none() {
                config[other] = Value::Null;
            }
        }
        Some(patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn apply(mut object: Value, patch: &Value) -> Value {
        json_patch::merge(&mut object, patch);
        object
    }

    fn configuration() -> Value {
        json!({
            "metadata": { "name": "hangar", "uid": "u", "resourceVersion": "7" },
            "webhooks": [
                { "name": "a.test", "clientConfig": { "service": { "name": "s", "namespace": "n", "path": "/a" } },
                  "somethingNew": true },
                { "name": "b.test", "clientConfig": { "url": "https://old.test/b", "caBundle": "b2xk" } },
                { "name": "c.test", "clientConfig": { "service": { "name": "s", "namespace": "n" } } },
            ],
        })
    }

    #[test]
    fn configurations_get_address_and_authority_and_keep_the_rest() {
        let url = WebhookTarget::Url("https://127.0.0.1:1".into());
        let token = PathToken::parse(TOKEN).expect("a token");
        let injection = Injection { target: &url, bundle: "ca", token: &token, conversion_path: "/convert" };
        let patch = injection.patch(Kind::Validating, &configuration()).expect("a patch");
        assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "7" }));
        let after = apply(configuration(), &patch);
        assert_eq!(
            after["webhooks"][0]["clientConfig"],
            json!({ "url": format!("https://127.0.0.1:1/{TOKEN}/a"), "caBundle": "Y2E=" })
        );
        assert_eq!(after["webhooks"][0]["somethingNew"], true);
        assert_eq!(after["webhooks"][1]["clientConfig"]["url"], format!("https://127.0.0.1:1/{TOKEN}/b"));
        assert_eq!(after["webhooks"][2], configuration()["webhooks"][2]);
        assert_eq!(injection.patch(Kind::Validating, &after), None, "nothing to do the second time");

        let service = WebhookTarget::Service { name: "s".into(), namespace: "n".into(), port: 443 };
        let back = Injection { target: &service, ..injection };
        let after = apply(after.clone(), &back.patch(Kind::Mutating, &after).expect("a patch"));
        assert_eq!(
            after["webhooks"][1]["clientConfig"],
            json!({
                "caBundle": "Y2E=",
                "service": { "name": "s", "namespace": "n", "port": 443, "path": format!("/{TOKEN}/b") },
            })
        );
    }

    #[test]
    fn definitions_are_converted_when_they_have_versions_to_convert() {
        let url = WebhookTarget::Url("https://127.0.0.1:1".into());
        let service = WebhookTarget::Service { name: "s".into(), namespace: "n".into(), port: 443 };
        let token = PathToken::parse(TOKEN).expect("a token");
        let to = |target| Injection { target, bundle: "ca", token: &token, conversion_path: "/convert" };
        let single = json!({ "spec": { "versions": [{}], "conversion": { "strategy": "None" } } });
        assert_eq!(to(&url).patch(Kind::Definition, &single), None);

        let two = json!({ "spec": { "versions": [{}, {}], "conversion": { "strategy": "None" } } });
        let by_url = apply(two.clone(), &to(&url).patch(Kind::Definition, &two).expect("a patch"));
        assert_eq!(
            by_url.pointer("/spec/conversion/webhook/clientConfig/url"),
            Some(&json!(format!("https://127.0.0.1:1/{TOKEN}/convert")))
        );
        assert_eq!(to(&url).patch(Kind::Definition, &by_url), None);
        let by_service =
            apply(by_url.clone(), &to(&service).patch(Kind::Definition, &by_url).expect("a patch"));
        assert_eq!(by_service.pointer("/spec/conversion/webhook/clientConfig/url"), None);
        assert_eq!(
            by_service.pointer("/spec/conversion/webhook/clientConfig/service/path"),
            Some(&json!(format!("/{TOKEN}/convert")))
        );
        assert_eq!(to(&service).patch(Kind::Definition, &by_service), None);
    }
}
