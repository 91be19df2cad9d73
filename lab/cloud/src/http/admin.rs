//! `/hangar/`: what tests and tools need beyond OpenStack. It requires the administrator's token from the
//! configuration.

use jiff::SignedDuration;
use serde_json::json;

use super::refuse;
use super::reply::Reply;
use super::request::Request;
use crate::config::Quota;
use crate::fault::FaultRule;
use crate::model::{Refusal, topology};
use crate::shared::{Shared, State};

/// Answers a call. Also returns what must be on disk before it leaves.
pub(crate) fn answer(shared: &Shared, state: &mut State, request: &Request) -> (Reply, Option<u64>) {
    let given = request.header("x-hangar-admin-token");
    let is_open = shared.config.admin_token.as_deref().is_some_and(|token| given == Some(token));
    // Without the token nobody learns that there is such a path.
    let outcome = if is_open { carry_out(shared, state, request) } else { Err(not_found()) };
    outcome.unwrap_or_else(|refusal| (refuse::plain(&refusal), None))
}

fn carry_out(shared: &Shared, state: &mut State, request: &Request) -> Result<(Reply, Option<u64>), Refusal> {
    let parts: Vec<&str> = request.segments.iter().skip(1).map(String::as_str).collect();
    let reply = match (request.method.as_str(), &parts[..]) {
        ("GET", ["state"]) => {
            let mut model = state.model.clone();
            // Tokens are good for use, not for reading.
            model.tokens.clear();
            let mut view = json!(model);
            // These are not in the state file, and nobody can read the rest without them.
            view["projects"] = json!(model.projects);
            Reply::ok(&view)
        }
        ("GET", ["topology"]) => Reply::ok(&json!(topology(&state.model))),
        ("GET", ["calls"]) => Reply::ok(&json!({"calls": state.calls})),
        ("DELETE", ["calls"]) => {
            state.calls.clear();
            Reply::empty(204)
        }
        ("GET", ["faults"]) => Reply::ok(&json!({"faults": state.faults.all()})),
        ("POST", ["faults"]) => {
            state.faults.arm(read::<FaultRule>(request)?);
            Reply::empty(204)
        }
        ("DELETE", ["faults"]) => {
            state.faults.clear();
            Reply::empty(204)
        }
        ("PUT", ["quotas", project]) => {
            let projects = state.model.projects.values();
            let found =
                projects.filter(|it| it.id == *project || it.name == *project).map(|it| it.id.clone()).next();
            let quota = read::<Quota>(request)?;
            state.model.quotas.insert(found.ok_or_else(not_found)?, quota);
            return Ok((Reply::empty(204), Some(shared.commit(state))));
        }
        ("POST", ["clock"]) => {
            let seconds = request.json()?.get("advance_seconds").and_then(serde_json::Value::as_i64);
            let seconds = seconds.ok_or_else(|| Refusal::bad("advance_seconds is missing"))?;
            state.clock_offset += SignedDuration::from_secs(seconds);
            shared.changed.notify_one();
            Reply::empty(204)
        }
        _ => return Err(not_found()),
    };
    Ok((reply, None))
}

fn read<T: serde::de::DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    serde_json::from_slice(&request.body).map_err(|error| Refusal::bad(error.to_string()))
}

fn not_found() -> Refusal {
    Refusal::not_found("NotFound", "Not Found")
}
