//! Keystone v3: tokens, the catalogue, and as much of projects and users as clients need to find themselves.

mod catalogue;
mod login;
mod view;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::call::Call;
use super::reply::Reply;
use crate::model::{Project, Refusal, User};

/// What is answered without a token: versions and logging in.
pub(crate) fn open(call: &mut Call<'_>, parts: &[&str]) -> Option<Result<Reply, Refusal>> {
    match (call.request.method.as_str(), parts) {
        ("GET" | "HEAD", []) => Some(Ok(Reply::json(300, &json!({"versions": {"values": [version(call)]}})))),
        ("GET" | "HEAD", ["v3"]) => Some(Ok(Reply::ok(&json!({"version": version(call)})))),
        ("POST", ["v3", "auth", "tokens"]) => Some(log_in(call)),
        _ => None,
    }
}

fn version(call: &Call<'_>) -> Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": call.url("/identity/v3/")}],
        "media-types": [{
            "base": "application/json",
            "type": "application/vnd.openstack.identity-v3+json",
        }],
    })
}

fn log_in(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let (proof, scope) = login::read(&call.request.object("auth")?)?;
    let seconds = i64::try_from(call.config.token_lifetime_seconds).unwrap_or(i64::MAX);
    let lifetime = SignedDuration::from_secs(seconds);
    let secret = call.model.issue_token(&proof, &scope, lifetime, &mut call.draw)?;
    Ok(Reply::json(201, &view::token(call, &secret)?).header("X-Subject-Token", secret))
}

/// What needs a token.
pub(crate) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    let ["v3", parts @ ..] = parts else { return Err(not_found("The resource could not be found.")) };
    match (call.request.method.as_str(), parts) {
        ("GET" | "HEAD", ["auth", "tokens"]) => {
            let secret = subject(call)?;
            Ok(Reply::ok(&view::token(call, &secret)?).header("X-Subject-Token", secret))
        }
        ("DELETE", ["auth", "tokens"]) => {
            let secret = subject(call)?;
            call.model.tokens.remove(&secret);
            Ok(Reply::empty(204))
        }
        ("GET", ["auth", "catalog"]) => {
            let links = json!({"self": call.url("/identity/v3/auth/catalog")});
            Ok(Reply::ok(&json!({"catalog": catalogue::of(call), "links": links})))
        }
        ("GET", ["auth", "projects"]) => {
            let mine = call.model.users.get(&call.caller.user).map(|user| user.projects.clone());
            let mine = mine.unwrap_or_default();
            let projects = call.model.projects.values().filter(|project| mine.contains(&project.id));
            Ok(list(call, "projects", projects.map(|it| view::project(call, it)).collect()))
        }
        ("GET", ["projects"]) if call.caller.is_admin => {
            let projects = call.model.projects.values().map(|project| view::project(call, project));
            Ok(list(call, "projects", projects.collect()))
        }
        ("GET", ["users"]) if call.caller.is_admin => {
            let users = call.model.users.values().map(|user| view::user(call, user));
            Ok(list(call, "users", users.collect()))
        }
        ("GET", ["projects", id]) => {
            let project = project(call, id)?;
            Ok(Reply::ok(&json!({"project": view::project(call, project)})))
        }
        ("GET", ["users", id]) => {
            let user = user(call, id)?;
            Ok(Reply::ok(&json!({"user": view::user(call, user)})))
        }
        ("GET", ["users", id, "projects"]) => {
            let mine = user(call, id)?.projects.clone();
            let projects = call.model.projects.values().filter(|project| mine.contains(&project.id));
            Ok(list(call, "projects", projects.map(|it| view::project(call, it)).collect()))
        }
        ("GET", ["users", id, "application_credentials"]) => {
            let id = user(call, id)?.id.clone();
            let mine = call.model.application_credentials.values().filter(|credential| credential.user == id);
            Ok(list(call, "application_credentials", mine.map(|it| view::credential(call, it)).collect()))
        }
        ("GET", ["domains", "default"]) => Ok(Reply::ok(&json!({"domain": view::domain(call)}))),
        ("GET", [kind @ ("projects" | "users")]) => Err(forbidden(&["identity:list", kind])),
        _ => Err(not_found("The resource could not be found.")),
    }
}

fn list(call: &Call<'_>, collection: &str, mut views: Vec<Value>) -> Reply {
    for (key, wanted) in &call.request.query {
        views.retain(|view| view.get(key).and_then(Value::as_str).is_none_or(|have| have == wanted));
    }
    let links = json!({"next": null, "self": call.url(&call.request.path_and_query()), "previous": null});
    Reply::ok(&json!({collection: views, "links": links}))
}

/// The token that the call is about: the caller's own, or any for an administrator.
fn subject(call: &Call<'_>) -> Result<String, Refusal> {
    let secret = call.request.header("x-subject-token").unwrap_or_default();
    let missing = || not_found("Could not find token.");
    let token = call.model.token(secret, call.draw.now).ok_or_else(missing)?;
    if token.user != call.caller.user && !call.caller.is_admin {
        return Err(forbidden(&["identity:validate_token"]));
    }
    Ok(secret.to_owned())
}

fn project<'a>(call: &'a Call<'_>, id: &str) -> Result<&'a Project, Refusal> {
    let user = call.model.users.get(&call.caller.user);
    let is_mine = user.is_some_and(|user| user.projects.iter().any(|mine| mine == id));
    match call.model.projects.get(id) {
        Some(project) if is_mine || call.caller.is_admin => Ok(project),
        None if call.caller.is_admin => Err(not_found(format!("Could not find project: {id}."))),
        _ => Err(forbidden(&["identity:get_project"])),
    }
}

fn user<'a>(call: &'a Call<'_>, id: &str) -> Result<&'a User, Refusal> {
    match call.model.users.get(id) {
        Some(user) if id == call.caller.user || call.caller.is_admin => Ok(user),
        None if call.caller.is_admin => Err(not_found(format!("Could not find user: {id}."))),
        _ => Err(forbidden(&["identity:get_user"])),
    }
}

fn not_found(message: impl Into<String>) -> Refusal {
    Refusal::not_found("NotFound", message)
}

fn forbidden(action: &[&str]) -> Refusal {
    let action = action.join("_");
    Refusal::forbidden(format!("You are not authorized to perform the requested action: {action}."))
}
