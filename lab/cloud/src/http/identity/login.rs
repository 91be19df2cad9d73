//! The body of a login.

use serde_json::{Map, Value};

use crate::model::{Named, Proof, Refusal, Scope};

/// Who they say they are, and what the token shall be good for.
pub(super) fn read(auth: &Map<String, Value>) -> Result<(Proof, Scope), Refusal> {
    let identity = auth.get("identity").ok_or_else(|| missing("identity"))?;
    let methods: Vec<&str> =
        identity["methods"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let proof = match methods[..] {
        ["password"] => {
            let user = &identity["password"]["user"];
            // A name means nothing without its domain.
            if user["id"].is_null() && user["domain"].is_null() {
                return Err(missing_in("domain", "user"));
            }
            Proof::Password(named(user), text(&user["password"]).ok_or_else(|| missing("password"))?)
        }
        ["application_credential"] => {
            let it = &identity["application_credential"];
            let secret = text(&it["secret"]).ok_or_else(|| missing("secret"))?;
            Proof::ApplicationCredential(text(&it["id"]), text(&it["name"]), named(&it["user"]), secret)
        }
        ["token"] => Proof::Token(text(&identity["token"]["id"]).ok_or_else(|| missing("id"))?),
        [method, ..] => return Err(missing_in(method, "identity")),
        [] => return Err(missing_in("methods", "identity")),
    };
    let scope = match auth.get("scope") {
        None | Some(Value::Null) => Scope::Default,
        Some(Value::String(text)) if text == "unscoped" => Scope::Unscoped,
        Some(scope) if scope.get("project").is_some() => Scope::Project(named(&scope["project"])),
        Some(_) => {
            return Err(Refusal::new(
                401,
                "Unauthorized",
                "The request you have made requires authentication.",
            ));
        }
    };
    Ok((proof, scope))
}

fn named(value: &Value) -> Named {
    let domain = &value["domain"];
    Named {
        id: text(&value["id"]),
        name: text(&value["name"]),
        domain: text(&domain["id"]).or_else(|| text(&domain["name"])),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

fn missing(what: &str) -> Refusal {
    missing_in(what, "auth")
}

fn missing_in(what: &str, place: &str) -> Refusal {
    let words = format!(
        "Expecting to find {what} in {place}. The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error."
    );
    Refusal::bad(words)
}
