//! Renders plans as text: one document per object, then steps, status, report and wake.

use serde_json::{Value, json};

use super::super::material::Content;
use super::super::*;
use crate::flow::Wake;

/// The whole plan.
pub(super) fn full(plan: &Plan) -> String {
    objects(plan) + &documents([rest(plan)])
}

/// Its objects.
pub(super) fn objects(plan: &Plan) -> String {
    documents(plan.objects.iter().map(|object| serde_json::to_value(object).unwrap()))
}

/// The plan with only the names and hashes of its objects: what is in them is in another golden.
pub(super) fn brief(plan: &Plan) -> String {
    let objects: Vec<String> = plan
        .objects
        .iter()
        .map(|object| {
            let hash = crate::hash::value(&serde_json::to_value(object).unwrap());
            format!("{} {}", ObjectIdentity::of(object), &hash[..8])
        })
        .collect();
    documents([json!({"objects": objects}), rest(plan)])
}

pub(super) fn documents(documents: impl IntoIterator<Item = Value>) -> String {
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&document).unwrap());
    }
    text
}

fn rest(plan: &Plan) -> Value {
    let steps: Vec<Value> = plan.steps.iter().map(step).collect();
    let wake = match plan.wake {
        Wake::OnChange => "on change".to_owned(),
        Wake::At(at) => at.to_string(),
    };
    json!({"steps": steps, "status": plan.status, "report": plan.report, "wake": wake})
}

fn step(step: &Step) -> Value {
    let id = step.id().to_string();
    match step {
        Step::Own(OwnStep::Mint(mint)) => {
            json!({"step": id, "why": mint.why.to_string(), "content": content(&mint.content)})
        }
        Step::Write(write) => written(&id, &write.action),
        _ => json!({"step": id}),
    }
}

fn written(id: &str, action: &flow::Action) -> Value {
    match action {
        flow::Action::Itself(fields) | flow::Action::Change { fields, .. } => {
            let (endpoint, annotations) =
                (&fields["spec"]["controlPlaneEndpoint"], &fields["metadata"]["annotations"]);
            let recorded = annotations.as_object().filter(|_| id.starts_with("record "));
            match (endpoint, recorded.and_then(|all| all.values().next())) {
                (endpoint, _) if endpoint.is_object() => json!({"step": id, "endpoint": endpoint}),
                (_, Some(value)) => json!({"step": id, "value": value}),
                _ if annotations.is_object() => json!({"step": id, "annotations": annotations}),
                _ => json!({"step": id}),
            }
        }
        _ => json!({"step": id}),
    }
}

fn content(content: &Content) -> Value {
    let intent = content.intent().map(|intent| {
        json!({
            "commonName": intent.common_name,
            "organizations": intent.organizations,
            "dnsNames": intent.dns_names,
            "ipAddresses": intent.ip_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "usage": format!("{:?}", intent.usage),
            "lifetimeHours": intent.lifetime.as_secs() / 3600,
        })
    });
    match content {
        Content::Copy { of, uid } => json!({"copy": {"of": of, "uid": uid}}),
        Content::BackedUp { from, backup } => json!({"backup": {"from": from, "id": backup}}),
        Content::Authority(_) => json!({"authority": intent}),
        Content::Certificate { issuer, .. } => json!({"certificate": intent, "issuer": issuer.secret}),
        Content::ServiceAccountKeys => json!("service account keys"),
        Content::EncryptionConfiguration => json!("encryption configuration"),
        Content::Kubeconfig { issuer, trust, cluster, user, server, .. } => json!({
            "kubeconfig": intent, "issuer": issuer.secret, "trust": trust,
            "cluster": cluster, "user": user, "server": server,
        }),
    }
}
