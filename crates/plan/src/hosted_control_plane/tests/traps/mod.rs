//! Traps: mistakes that are easy to make, one test each.

mod access;
mod addons;
mod alarms;
mod backup;
mod certificates;
mod etcd;
mod files;
mod gateway;
mod kept;
mod order;
mod pods;
mod reach;
mod reads;
mod rest;
mod restore;
mod restore_members;
mod tenant;
mod trust;
mod upgrade;
mod values;
mod ways;

use std::collections::BTreeSet;
use std::net::IpAddr;

use hangar_api::contract::Endpoint;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::checker::checked;
use super::fixture::{
    ADDRESS, TUNNEL_ADDRESS, accept_routes, addon_facts, all_ready, answer_routes, api_server_ready, claim,
    created, days, delete, etcd_started, gateway, is, pod, reach_tenant, secret, see_gateway, settle,
    through_gateway, workload,
};
use super::golden;
use crate::flow::{Clocks, Outcome, Read, Wake};
use crate::hosted_control_plane::material::Content;
use crate::hosted_control_plane::*;

fn kinds(plan: &Plan, kind: &str) -> Vec<String> {
    let objects = plan.objects.iter().map(ObjectIdentity::of);
    objects.filter(|object| object.kind == kind).map(|object| object.name).collect()
}

fn object<'plan>(plan: &'plan Plan, kind: &str, name: &str) -> &'plan Value {
    let wanted = |object: &&DynamicObject| {
        let identity = ObjectIdentity::of(object);
        identity.kind == kind && identity.name == name
    };
    &plan.objects.iter().find(wanted).unwrap_or_else(|| panic!("no {kind} {name}")).data
}

fn tenant_object(observed: &Observed, kind: &str, name: &str) -> Option<Value> {
    let wanted = |object: &DynamicObject| {
        let identity = ObjectIdentity::of(object);
        identity.kind == kind && identity.name == name
    };
    tenant_objects(observed).into_iter().find(wanted).map(|object| object.data)
}

/// The container that a pod is for: the API server's starts after the tunnel's.
fn container<'plan>(plan: &'plan Plan, kind: &str, name: &str) -> &'plan Value {
    let containers = &object(plan, kind, name)["spec"]["template"]["spec"]["containers"];
    let is_tunnel = containers[0]["name"] == "konnectivity-server";
    &containers[usize::from(is_tunnel)]
}

fn arguments(plan: &Plan, name: &str) -> BTreeSet<String> {
    let arguments = container(plan, "Deployment", name)["args"].as_array().unwrap();
    arguments.iter().map(|flag| flag.as_str().unwrap().to_owned()).collect()
}

fn condition_status(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| format!("{} {}", condition.status, condition.reason)).unwrap_or_default()
}

fn mints(plan: &Plan) -> Vec<Material> {
    let mint = |step: &Step| match step {
        Step::Own(OwnStep::Mint(mint)) => Some(mint.material),
        _ => None,
    };
    plan.steps.iter().filter_map(mint).collect()
}
