//! For tests: what every plan of the core kinds must satisfy, and how goldens show a plan.

use hangar_api::conditions::{Priority, Status};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::json;

use crate::conditions::polarity;
use crate::flow::{Frontier, Identified, Report};

/// Everything that is not as it should be names who must act.
pub(crate) fn check_conditions(conditions: &[Condition]) {
    for condition in conditions {
        let status = Status::parse(&condition.status);
        assert!(!condition.reason.is_empty(), "{condition:?}");
        if Priority::of(status, polarity(&condition.type_)) != Priority::Info {
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
