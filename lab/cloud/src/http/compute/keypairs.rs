//! Keypairs over HTTP. Public keys can be imported; the cloud generates no private keys.

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::time::microseconds_bare;
use super::microversion::Version;
use super::no_such_resource;
use crate::http::{Attributes, Call, Reply, page};
use crate::model::{Keypair, Refusal};

pub(super) fn answer(call: &mut Call<'_>, parts: &[&str], version: Version) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => {
            let mine = call.model.keypairs.get(&call.caller.user);
            let views = mine.into_iter().flat_map(|mine| mine.values()).map(|key| view(key, version));
            let (page, _) = page_by_name(call, views.collect())?;
            Ok(Reply::ok(&json!({"keypairs": page})))
        }
        ("POST", []) => make(call, version),
        ("GET", [name]) => {
            let keypair = call.model.keypair(&call.caller.user, name)?;
            let mut view = view(keypair, version);
            view["keypair"]["user_id"] = json!(call.caller.user);
            view["keypair"]["id"] = json!(keypair.serial);
            view["keypair"]["deleted"] = json!(false);
            view["keypair"]["deleted_at"] = Value::Null;
            view["keypair"]["updated_at"] = Value::Null;
            view["keypair"]["created_at"] = json!(microseconds_bare(keypair.created));
            Ok(Reply::ok(&view))
        }
        ("DELETE", [name]) => {
            call.model.delete_keypair(&call.caller.user, name)?;
            // Nova changed its mind about this status in 2.2.
            Ok(Reply::empty(if version >= Version(2, 2) { 204 } else { 202 }))
        }
        _ => Err(no_such_resource()),
    }
}

fn page_by_name(call: &Call<'_>, views: Vec<Value>) -> Result<(Vec<Value>, Option<String>), Refusal> {
    let named = views.into_iter().map(|view| json!({"id": view["keypair"]["name"], "view": view})).collect();
    let (page, next) = page(call.request, named, "id", 1000)?;
    Ok((page.into_iter().map(|mut it| it["view"].take()).collect(), next))
}

fn make(call: &mut Call<'_>, version: Version) -> Result<Reply, Refusal> {
    let mut attributes = Attributes::new(call.object("keypair")?);
    let required = |name: &str| {
        Refusal::bad(format!("Invalid input for field/attribute keypair. '{name}' is a required property"))
    };
    let name = attributes.text("name")?.ok_or_else(|| required("name"))?;
    let Some(Value::String(public_key)) = attributes.take("public_key") else {
        return Err(required("public_key"));
    };
    let kind = attributes.text("type")?.unwrap_or_else(|| "ssh".into());
    if kind == "ssh" && public_key.split_ascii_whitespace().count() < 2 {
        return Err(Refusal::bad("Keypair data is invalid: failed to generate fingerprint"));
    }
    let (user, project) = (call.caller.user.clone(), call.caller.project.clone());
    let keypair = call.model.create_keypair(&user, &project, &name, &kind, public_key.trim(), &call.draw)?;
    let mut view = view(&keypair, version);
    view["keypair"]["user_id"] = json!(user);
    Ok(Reply::json(if version >= Version(2, 2) { 201 } else { 200 }, &view))
}

fn view(keypair: &Keypair, version: Version) -> Value {
    let mut view = json!({
        "name": keypair.name,
        "public_key": keypair.public_key,
        "fingerprint": fingerprint(&keypair.public_key),
    });
    if version >= Version(2, 2) {
        view["type"] = json!(keypair.kind);
    }
    json!({"keypair": view})
}

/// In the shape of a fingerprint. It tells keys apart; it is not the MD5 of the key.
fn fingerprint(key: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, key.as_bytes()).as_bytes().map(|byte| format!("{byte:02x}")).join(":")
}
