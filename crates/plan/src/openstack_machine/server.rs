//! Making a server and keeping an eye on it.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::infrastructure::v1beta1::{MachineResources, PortResource, ResolvedMachine};
use serde_json::json;

use super::{
    BUSY, CloudFacts, Draft, NewServer, POLL, ServerStep, TYPE, preflight, request, status, wanted_ports,
};
use crate::flow::{Read, StepId, Write};
use crate::openstack::{Noted, Picked, Port, Server, pick};

/// The server, if there is one; else the way to it.
pub(super) fn draft(draft: &mut Draft<'_>, facts: &CloudFacts) {
    let visible = facts.servers.clone().filter(|server| !server.is_gone());
    let bound = facts.ports.values().flat_map(Read::iter).find(|port| !port.device_id.is_empty());
    let recorded = draft.status.instance_id.clone();
    let preferred = bound.map(|port| port.device_id.clone()).or(recorded);
    match pick(&visible, |server| &server.id, preferred.as_deref()) {
        Picked::Unknown(why) => draft.unknown(TYPE, &why),
        Picked::One(server, extras) => {
            for (number, extra) in extras.iter().enumerate() {
                let name = format!("{} (extra {})", server.name, number + 1);
                draft.step(ServerStep::DeleteServer { name, id: extra.id.clone() });
            }
            seen(draft, facts, &server);
        }
        Picked::None if draft.observed.was_made() => {
            let waiting = Waiting::new(Actor::ClusterOwner, "the Machine to be replaced")
                .because("the server was deleted and is not made again: its disk is gone");
            draft.noted.push(Noted::fails(TYPE, "InstanceDeleted", &waiting));
            draft.status.instance_state = Some("DELETED".to_owned());
            draft.status.ready = Some(false);
        }
        Picked::None => match (bound, request::unsettled(draft.observed)) {
            (Some(port), _) => {
                let on =
                    format!("the server {} on port {} to be listed by the cloud", port.device_id, port.name);
                draft.wait(TYPE, "InstanceNotReady", Actor::Cloud, &on);
                draft.again(BUSY);
            }
            (None, Some(left)) => request::settle(draft, facts, left),
            (None, None) => make(draft, facts),
        },
    }
}

fn make(draft: &mut Draft<'_>, facts: &CloudFacts) {
    let Some(found) = &facts.preflight else { return draft.unknown(TYPE, "what it needs was not asked for") };
    let resolved = match preflight::resolve(draft.observed, found) {
        Ok(resolved) => resolved,
        Err(problems) => {
            let words: Vec<&str> = problems.iter().map(|problem| problem.words.as_str()).collect();
            if problems.iter().all(|problem| problem.is_unknown) {
                return draft.unknown(TYPE, &words.join("; "));
            }
            let on = "everything the server needs to exist";
            return draft.broken(TYPE, "InvalidMachineSpec", on, &words.join("; "));
        }
    };
    // Before the first port: from here on other names are refused.
    draft.status.resolved = Some(resolved.clone());
    let Some(ports) = ports(draft, facts, &resolved) else { return };
    draft.status.resources = Some(MachineResources {
        ports: ports.iter().map(|port| PortResource { id: port.id.clone() }).collect(),
    });
    let Read::One(user_data) = &draft.observed.user_data else { return };
    let name = draft.observed.server_name();
    draft.report.decide(format!("make the server {name}"), "everything it needs is there");
    let server = create(draft, name, resolved, &ports, user_data);
    draft.step(ServerStep::CreateServer(Box::new(server)));
    draft.working(TYPE, "InstanceNotReady", "the server to be made");
}

fn create(
    draft: &Draft<'_>,
    name: String,
    resolved: ResolvedMachine,
    ports: &[Port],
    user_data: &super::UserData,
) -> NewServer {
    let spec = &draft.observed.object.spec;
    let infrastructure = draft.observed.infrastructure_facts();
    let machine = draft.observed.machine.iter().next().cloned().unwrap_or_default();
    let mut tags = [&spec.tags[..], &infrastructure.tags[..]].concat();
    super::ports::dedup(&mut tags);
    let omits_zone = machine.is_control_plane && infrastructure.omits_zone;
    NewServer {
        name,
        image_id: resolved.image_id,
        flavor_id: resolved.flavor_id,
        server_group_id: Some(resolved.server_group_id).filter(|id| !id.is_empty()),
        port_ids: ports.iter().map(|port| port.id.clone()).collect(),
        user_data: user_data.clone(),
        metadata: spec.server_metadata.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect(),
        tags,
        key_name: spec.ssh_key_name.clone().filter(|name| !name.is_empty()),
        config_drive: spec.config_drive,
        availability_zone: machine.failure_domain.filter(|zone| !zone.is_empty() && !omits_zone),
        scheduler_hints: status::scheduler_hints(spec),
    }
}

/// All ports, once they exist; duplicates that nobody uses are removed.
fn ports(draft: &mut Draft<'_>, facts: &CloudFacts, resolved: &ResolvedMachine) -> Option<Vec<Port>> {
    let mut all = Vec::new();
    for wanted in &resolved.ports {
        let read =
            facts.ports.get(&wanted.name).cloned().unwrap_or_else(|| Read::unknown("the port was not read"));
        let used = read.iter().find(|port| !port.device_id.is_empty()).map(|port| port.id.clone());
        match pick(&read, |port| &port.id, used.as_deref()) {
            Picked::Unknown(why) => {
                draft.unknown(TYPE, &why);
                return None;
            }
            Picked::None => draft.step(ServerStep::CreatePort(Box::new(wanted.clone()))),
            Picked::One(port, extras) => {
                for (number, extra) in
                    extras.iter().enumerate().filter(|(_, extra)| extra.device_id.is_empty())
                {
                    let name = format!("{} (extra {})", wanted.name, number + 1);
                    draft.step(ServerStep::DeletePort { name, id: extra.id.clone() });
                }
                if !wanted.tags.iter().all(|tag| port.tags.contains(tag)) {
                    // The call replaces all tags; those that others set stay.
                    let mut tags = [&port.tags[..], &wanted.tags[..]].concat();
                    super::ports::dedup(&mut tags);
                    let (name, id) = (wanted.name.clone(), port.id.clone());
                    draft.step(ServerStep::TagPort { name, id, tags });
                }
                all.push(port);
            }
        }
    }
    if all.len() < resolved.ports.len() {
        draft.working(TYPE, "InstanceNotReady", "the ports to be made");
        return None;
    }
    Some(all)
}

/// A server that exists.
fn seen(draft: &mut Draft<'_>, facts: &CloudFacts, server: &Server) {
    draft.status.instance_id = Some(server.id.clone());
    draft.status.instance_state = Some(server.status.clone());
    if request::unsettled(draft.observed).is_some() {
        draft.step(request::forget());
    }
    record_ports(draft, facts, server);
    drop_late_ports(draft, facts, server);
    // Known only in the pass that made the server; kept from then on.
    if draft.status.resolved.is_none()
        && let Some(found) = &facts.preflight
        && let Ok(resolved) = preflight::resolve(draft.observed, found)
    {
        draft.status.resolved = Some(resolved);
    }
    match server.status.as_str() {
        "ACTIVE" => active(draft, facts, server),
        "BUILD" | "" => {
            draft.wait(TYPE, "InstanceNotReady", Actor::Cloud, "the server to be built");
            draft.again(BUSY);
        }
        "ERROR" => {
            let fault = server.fault.clone().unwrap_or_else(|| "the cloud gives no reason".to_owned());
            let waiting = Waiting::new(Actor::ClusterOwner, "the Machine to be replaced")
                .because(format!("the server is in ERROR: {fault}"));
            draft.noted.push(Noted::fails(TYPE, "InstanceStateError", &waiting));
            draft.status.ready = Some(false);
            draft.again(POLL);
        }
        other => {
            // Stopped, moving, shelved: the node will say what that means for it.
            let waiting =
                Waiting::new(Actor::Cloud, "the server to be ACTIVE").because(format!("it is {other}"));
            draft.noted.push(Noted::unknown(TYPE, "InstanceNotReady", &waiting));
            draft.again(POLL);
        }
    }
}

fn record_ports(draft: &mut Draft<'_>, facts: &CloudFacts, server: &Server) {
    let observed = draft.observed;
    let wanted =
        wanted_ports(&observed.server_name(), &observed.object.spec, &observed.infrastructure_facts());
    let known = wanted.iter().filter_map(|wanted| facts.ports.get(&wanted.name));
    let bound = known.flat_map(Read::iter).filter(|port| port.device_id == server.id);
    let ports: Vec<PortResource> = bound.map(|port| PortResource { id: port.id.clone() }).collect();
    if !ports.is_empty() {
        draft.status.resources = Some(MachineResources { ports });
    }
}

/// Ports that came late, after others were made in their place: nobody uses them, and each costs an address. Only beside
/// one that the server has: until then it could be given any of them.
fn drop_late_ports(draft: &mut Draft<'_>, facts: &CloudFacts, server: &Server) {
    for (name, read) in &facts.ports {
        if !read.iter().any(|port| port.device_id == server.id) {
            continue;
        }
        for (number, late) in read.iter().filter(|port| port.device_id.is_empty()).enumerate() {
            let name = format!("{name} (extra {})", number + 1);
            draft.step(ServerStep::DeletePort { name, id: late.id.clone() });
        }
    }
}

/// It runs; without one of its ports it is no node.
fn active(draft: &mut Draft<'_>, facts: &CloudFacts, server: &Server) {
    draft.status.addresses = status::addresses(server);
    let is_bound = |read: &Read<Port>| read.iter().any(|port| port.device_id == server.id);
    match facts.ports.iter().find(|(_, read)| !is_bound(read)) {
        Some((_, Read::Unknown(unknown))) => return draft.unknown(TYPE, &unknown.why),
        Some((name, _)) => {
            let waiting = Waiting::new(Actor::Cloud, format!("port {name} to be bound to the server"))
                .because("the server is ACTIVE without it; if this lasts, delete the Machine");
            draft.noted.push(Noted::warns(TYPE, "InstanceNotReady", &waiting));
            return draft.again(POLL);
        }
        None => {}
    }
    let provider_id = status::provider_id(&draft.observed.object.spec, &server.id);
    if draft.observed.object.spec.provider_id.is_none() {
        // The contract: the id is there before the machine is called ready.
        let fields = json!({ "spec": { "providerID": provider_id } });
        draft.step(Write::itself(StepId::new("record", "object", "self"), fields));
        return draft.working(TYPE, "InstanceNotReady", "the provider id to be written");
    }
    draft.status.ready = Some(true);
    draft.status.initialization.get_or_insert_default().provisioned = Some(true);
    draft.noted.push(Noted::holds(TYPE, "Ready"));
}
