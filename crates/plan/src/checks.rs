//! What every plan of the core kinds must satisfy, and how goldens show them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::json;

use crate::flow::{Frontier, Identified, Report};

/// Conditions for which True is the bad news.
const NEGATIVE: [&str; 8] = [
    "Deleting",
    "Paused",
    "RollingOut",
    "ScalingUp",
    "ScalingDown",
    "Remediating",
    "Updating",
    "EndpointConflict",
];

/// Everything that is not as it should be names who must act.
pub(crate) fn check_conditions(conditions: &[Condition]) {
    for condition in conditions {
        let is_negative = NEGATIVE.contains(&condition.type_.as_str());
        let is_good = condition.status == if is_negative { "False" } else { "True" };
        assert!(!condition.reason.is_empty(), "{condition:?}");
        if !is_good {
            let names_somebody =
                condition.message.contains("must act") || condition.message.contains("not yet reported");
            assert!(names_somebody, "{condition:?}");
        }
    }
}

/// A plan as text: steps, then status and report as YAML documents.
pub(crate) fn golden<S: Identified + std::fmt::Debug>(
    steps: &Frontier<S>,
    status: &impl Serialize,
    report: &Report,
) -> String {
    let steps: Vec<String> = steps.iter().map(|step| format!("{}: {step:?}", step.id())).collect();
    let yaml = |value: serde_json::Value| serde_saphyr::to_string(&value).unwrap();
    let documents = [
        yaml(json!({ "steps": steps })),
        yaml(json!({ "status": status })),
        yaml(json!({ "report": report })),
    ];
    documents.join("---\n")
}
