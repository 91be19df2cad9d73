//! Limits, quotas and zones of Nova.

use serde_json::{Value, json};

use super::no_such_resource;
use crate::http::{Call, Reply};
use crate::model::Refusal;

pub(super) fn zones(call: &Call<'_>) -> Reply {
    let zones: Vec<Value> = call
        .model
        .availability_zones
        .iter()
        .map(|zone| json!({"zoneName": zone, "zoneState": {"available": true}, "hosts": null}))
        .collect();
    Reply::ok(&json!({"availabilityZoneInfo": zones}))
}

pub(super) fn limits(call: &Call<'_>) -> Reply {
    let quota = call.model.quota(&call.caller.project);
    let (servers, cores, ram) = call.model.compute_usage(&call.caller.project);
    let mine = |project: &String| *project == call.caller.project;
    let groups = call.model.server_groups.values().filter(|group| mine(&group.project)).count();
    Reply::ok(&json!({"limits": {"rate": [], "absolute": {
        "maxTotalInstances": quota.instances,
        "maxTotalCores": quota.cores,
        "maxTotalRAMSize": quota.ram,
        "maxTotalKeypairs": quota.key_pairs,
        "maxServerGroups": quota.server_groups,
        "maxServerGroupMembers": quota.server_group_members,
        "maxServerMeta": quota.metadata_items,
        "totalInstancesUsed": servers,
        "totalCoresUsed": cores,
        "totalRAMUsed": ram,
        "totalServerGroupsUsed": groups,
    }}}))
}

pub(super) fn quotas(call: &Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    let [project, rest @ ..] = parts else { return Err(no_such_resource()) };
    if *project != call.caller.project && !call.caller.is_admin {
        let words = "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.";
        return Err(Refusal::forbidden(words));
    }
    let with_usage = match (call.request.method.as_str(), rest) {
        ("GET", [] | ["defaults"]) => false,
        ("GET", ["detail"]) => true,
        _ => return Err(no_such_resource()),
    };
    let quota = call.model.quota(project);
    let (servers, cores, ram) = call.model.compute_usage(project);
    let show = |limit: i64, used: i64| {
        if with_usage { json!({"limit": limit, "in_use": used, "reserved": 0}) } else { json!(limit) }
    };
    Ok(Reply::ok(&json!({"quota_set": {
        "id": project,
        "instances": show(quota.instances, servers),
        "cores": show(quota.cores, cores),
        "ram": show(quota.ram, ram),
        "key_pairs": show(quota.key_pairs, 0),
        "server_groups": show(quota.server_groups, 0),
        "server_group_members": show(quota.server_group_members, 0),
        "metadata_items": show(quota.metadata_items, 0),
    }})))
}
