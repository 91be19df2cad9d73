//! Keystone's objects as JSON.

use serde_json::{Value, json};

use super::super::time::microseconds;
use super::catalogue;
use crate::http::Call;
use crate::model::{ApplicationCredential, Project, Refusal, User};

/// A token with its catalogue.
pub(super) fn token(call: &Call<'_>, secret: &str) -> Result<Value, Refusal> {
    let missing = || Refusal::not_found("NotFound", "Could not find token.");
    let token = call.model.token(secret, call.draw.now).ok_or_else(missing)?;
    let user = call.model.users.get(&token.user).ok_or_else(missing)?;
    let domain = json!({"id": "default", "name": "Default"});
    let mut view = json!({
        "methods": token.methods,
        "user": {"domain": domain, "id": user.id, "name": user.name, "password_expires_at": null},
        "audit_ids": [token.audit],
        "expires_at": microseconds(token.expires),
        "issued_at": microseconds(token.issued),
    });
    if let Some(project) = token.project.as_ref().and_then(|id| call.model.projects.get(id)) {
        let role = |name: &String| json!({"id": catalogue::stable_id(&format!("role/{name}")), "name": name});
        view["project"] = json!({"domain": domain, "id": project.id, "name": project.name});
        view["is_domain"] = json!(false);
        view["roles"] = user.roles.iter().map(role).collect();
        if call.request.parameter("nocatalog").is_none() {
            view["catalog"] = catalogue::of(call);
        }
    }
    let credential = token.application_credential.as_ref();
    if let Some(it) = credential.and_then(|id| call.model.application_credentials.get(id)) {
        view["application_credential"] = json!({"id": it.id, "name": it.name, "restricted": true});
    }
    Ok(json!({"token": view}))
}

pub(super) fn project(call: &Call<'_>, project: &Project) -> Value {
    json!({
        "id": project.id,
        "name": project.name,
        "domain_id": "default",
        "description": "",
        "enabled": true,
        "parent_id": "default",
        "is_domain": false,
        "tags": [],
        "options": {},
        "links": {"self": call.url(&format!("/identity/v3/projects/{}", project.id))},
    })
}

pub(super) fn user(call: &Call<'_>, user: &User) -> Value {
    json!({
        "id": user.id,
        "name": user.name,
        "domain_id": "default",
        "enabled": true,
        "default_project_id": user.projects.first(),
        "password_expires_at": null,
        "options": {},
        "links": {"self": call.url(&format!("/identity/v3/users/{}", user.id))},
    })
}

pub(super) fn credential(call: &Call<'_>, credential: &ApplicationCredential) -> Value {
    let path = format!("/identity/v3/users/{}/application_credentials/{}", credential.user, credential.id);
    json!({
        "id": credential.id,
        "name": credential.name,
        "description": null,
        "expires_at": null,
        "project_id": credential.project,
        "roles": [],
        "unrestricted": false,
        "links": {"self": call.url(&path)},
    })
}

pub(super) fn domain(call: &Call<'_>) -> Value {
    json!({
        "id": "default",
        "name": "Default",
        "description": "The default domain",
        "enabled": true,
        "tags": [],
        "options": {},
        "links": {"self": call.url("/identity/v3/domains/default")},
    })
}
