//! Finds the service that answers a path.

use super::call::Call;
use super::reply::Reply;
use super::request::Request;
use super::{Effects, admin, compute, identity, image, network, refuse};
use crate::model::{Caller, Draw, Refusal};
use crate::shared::Shared;
use jiff::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Identity,
    Compute,
    Network,
    Image,
    Admin,
    Nobody,
}

impl Service {
    pub(crate) fn of(request: &Request) -> Self {
        match request.segments.first().map(String::as_str) {
            Some("identity") => Self::Identity,
            Some("compute") => Self::Compute,
            Some("network") => Self::Network,
            Some("image") => Self::Image,
            Some("hangar") => Self::Admin,
            _ => Self::Nobody,
        }
    }

    /// A refusal in the service's own shape.
    pub(crate) fn refuse(self, refusal: &Refusal, request: &Request) -> Reply {
        if refusal.status == 401 {
            return refuse::identity(refusal);
        }
        match self {
            Self::Identity => refuse::identity(refusal),
            Self::Compute => refuse::compute(refusal),
            Self::Network => refuse::network(refusal),
            Self::Image => refuse::image(refusal, request),
            Self::Admin | Self::Nobody => refuse::plain(refusal),
        }
    }

    /// Adds the headers that each answer of the service has.
    pub(crate) fn sign(self, reply: Reply, request: &Request, request_id: &str, base_url: &str) -> Reply {
        let reply = match reply.status {
            401 => reply.header("WWW-Authenticate", format!("Keystone uri=\"{base_url}/identity\"")),
            _ => reply,
        };
        match self {
            // A call without a token never came as far as the versions.
            Self::Compute if reply.status == 401 => reply,
            Self::Compute => compute::sign(reply, request).header("x-compute-request-id", request_id),
            Self::Identity => reply.header("Vary", "X-Auth-Token"),
            _ => reply,
        }
    }

    /// What the service says where the quota is reached whatever it is.
    fn over_quota(self, request: &Request) -> Refusal {
        let last = request.segments.last().map_or("", String::as_str);
        match self {
            Self::Network => Refusal::over_quota(last.trim_end_matches('s')),
            _ => Refusal::forbidden(
                "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
            ),
        }
    }
}

/// Carries a call out. Also returns what must be on disk before it is answered.
pub(crate) fn dispatch(
    shared: &Shared,
    request: &Request,
    service: Service,
    effects: Effects,
    arrived: Timestamp,
) -> (Reply, Option<u64>) {
    let mut state = shared.lock();
    if service == Service::Admin {
        return admin::answer(shared, &mut state, request);
    }
    let now = state.now();
    let secret = request.header("x-auth-token").unwrap_or_default();
    let caller = state.model.caller(secret, now);
    // All that strangers can write is a login: they get no copy of the model made.
    if caller.is_none() && !request.is_read() && service != Service::Identity {
        return (service.refuse(&unauthorized(), request), None);
    }
    // Reads change nothing, so they need no copy; one that lags sees what was.
    let mut draft = match (request.is_read(), effects.lag) {
        (false, _) => Some(state.model.clone()),
        (true, Some(lag)) => state.as_of(now - lag).cloned(),
        (true, None) => None,
    };
    let mut draw = Draw::random(now);
    draw.arrived = arrived;
    let nobody = || Caller { user: String::new(), project: String::new(), is_admin: false };
    let mut call = Call {
        model: draft.as_mut().unwrap_or(&mut state.model),
        config: &shared.config,
        base_url: &shared.base_url,
        request,
        draw,
        fail_server: effects.fail_server,
        caller: caller.clone().unwrap_or_else(nobody),
    };
    let parts: Vec<&str> = request.segments.iter().skip(1).map(String::as_str).collect();
    let open = match service {
        Service::Identity => identity::open(&mut call, &parts),
        Service::Compute => compute::versions(&call, &parts).map(Ok),
        Service::Network => network::versions(&call, &parts).map(Ok),
        Service::Image => image::versions(&call, &parts).map(Ok),
        Service::Admin | Service::Nobody => Some(Err(Refusal::not_found("NotFound", "Not Found"))),
    };
    let outcome = match open {
        Some(outcome) => outcome,
        None if caller.is_none() => Err(unauthorized()),
        None if effects.over_quota => Err(service.over_quota(request)),
        None => match service {
            Service::Identity => identity::answer(&mut call, &parts),
            Service::Compute => compute::answer(&mut call, &parts),
            Service::Network => network::answer(&mut call, &parts),
            _ => image::answer(&mut call, &parts),
        },
    };
    match outcome {
        Err(refusal) => (service.refuse(&refusal, request), None),
        Ok(reply) => {
            let committed = draft.filter(|_| !request.is_read()).map(|draft| {
                state.replace(draft);
                shared.commit(&mut state)
            });
            (reply, committed)
        }
    }
}

fn unauthorized() -> Refusal {
    Refusal::new(401, "Unauthorized", "The request you have made requires authentication.")
}
