//! Nova v2.1, with microversions up to [`microversion::LARGEST`].

mod actions;
mod create;
mod flavors;
mod interfaces;
mod keypairs;
mod limits;
mod metadata;
mod microversion;
mod server_groups;
mod servers;
mod tags;
mod view;

use serde_json::{Value, json};

use super::call::Call;
use super::refuse::NO_SUCH_PATH;
use super::reply::Reply;
use super::request::Request;
use crate::model::Refusal;
use microversion::Version;

/// What is answered without a token.
pub(crate) fn versions(call: &Call<'_>, parts: &[&str]) -> Option<Reply> {
    match parts {
        [] => Some(Reply::ok(&json!({"versions": [version(call, "v2.0"), version(call, "v2.1")]}))),
        ["v2.1"] => {
            let mut version = version(call, "v2.1");
            version["media-types"] = json!([{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]);
            Some(Reply::ok(&json!({"version": version})))
        }
        _ => None,
    }
}

fn version(call: &Call<'_>, id: &str) -> Value {
    let is_current = id == "v2.1";
    let text = |version: Version| if is_current { version.to_string() } else { String::new() };
    json!({
        "id": id,
        "status": if is_current { "CURRENT" } else { "SUPPORTED" },
        "version": text(microversion::LARGEST),
        "min_version": text(microversion::SMALLEST),
        "updated": if is_current { "2013-07-23T11:33:21Z" } else { "2011-01-21T11:33:21Z" },
        "links": [{"rel": "self", "href": call.url(&format!("/compute/{id}/"))}],
    })
}

/// What each of Nova's answers carries: the version it is in.
pub(crate) fn sign(reply: Reply, request: &Request) -> Reply {
    let version = microversion::of(request).unwrap_or(microversion::SMALLEST).to_string();
    reply
        .header("OpenStack-API-Version", format!("compute {version}"))
        .header("X-OpenStack-Nova-API-Version", version)
        .header("Vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version")
}

/// What needs a token.
pub(crate) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    let version = microversion::of(call.request)?;
    let ["v2.1", parts @ ..] = parts else { return Err(no_such_resource()) };
    match parts {
        ["servers", rest @ ..] => match rest {
            [id, "action"] => actions::answer(call, id, version),
            [id, "metadata", rest @ ..] => metadata::answer(call, id, rest),
            [id, "tags", rest @ ..] => tags::answer(call, id, rest),
            [id, "os-interface", rest @ ..] => interfaces::answer(call, id, rest),
            _ => servers::answer(call, rest, version),
        },
        ["flavors", rest @ ..] => flavors::answer(call, rest, version),
        ["os-keypairs", rest @ ..] => keypairs::answer(call, rest, version),
        ["os-server-groups", rest @ ..] => server_groups::answer(call, rest, version),
        ["os-availability-zone"] => Ok(limits::zones(call)),
        ["os-availability-zone", "detail"] if call.caller.is_admin => Ok(limits::zones(call)),
        ["os-availability-zone", "detail"] => Err(Refusal::forbidden(
            "Policy doesn't allow os_compute_api:os-availability-zone:detail to be performed.",
        )),
        ["limits"] => Ok(limits::limits(call)),
        ["os-quota-sets", rest @ ..] => limits::quotas(call, rest),
        ["extensions"] => Ok(Reply::ok(&json!({"extensions": []}))),
        _ => Err(no_such_resource()),
    }
}

/// A console's text as Nova tells it: the last lines, where not all are wanted.
pub(crate) fn console(text: &str, lines: Option<usize>) -> Reply {
    let output = match lines {
        None => text.to_owned(),
        Some(lines) => {
            let all: Vec<&str> = text.lines().collect();
            let mut tail = all[all.len().saturating_sub(lines)..].join("\n");
            tail.push('\n');
            tail
        }
    };
    Reply::ok(&json!({"output": output}))
}

fn no_such_resource() -> Refusal {
    Refusal::not_found(NO_SUCH_PATH, "The resource could not be found.")
}
