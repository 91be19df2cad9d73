//! Reads that failed.

use super::*;

#[test]
fn nothing_follows_from_a_failed_read() {
    let unknown = || "the watch is not synced";
    let mut observed = all_ready(&json!({}));
    observed.cluster = Read::unknown(unknown());
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());

    let mut observed = all_ready(&json!({}));
    for read in observed.secrets.values_mut() {
        *read = Read::unknown(unknown());
    }
    let plan = checked(&observed);
    assert_eq!(mints(&plan), []);
    // Its template names what was not read: left as it is, it rolls nobody.
    assert_eq!(kinds(&plan, "Deployment"), ["demo-controller-manager", "demo-scheduler"]);

    // A certificate does not lose its names because the Service could not be read.
    let mut observed = all_ready(&json!({}));
    observed.service = Read::unknown(unknown());
    assert_eq!(mints(&checked(&observed)), []);

    let mut observed = all_ready(&json!({}));
    observed.etcd = Read::unknown(unknown());
    observed.api_server = Read::unknown(unknown());
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), Vec::<String>::new());
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "Unknown NotRead");
    assert_eq!(plan.status.ready_replicas, Some(1), "what was not read stays");

    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
    for read in [&mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
        *read = Read::unknown(unknown());
    }
    assert!(checked(&observed).steps.is_empty(), "etcd must not go before API servers are seen to be gone");
}

#[test]
fn a_strange_epoch_is_not_rendered() {
    let mut observed = all_ready(&json!({}));
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(names::EPOCH_ANNOTATION.to_owned(), "2".to_owned());
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    assert_eq!(condition_status(&plan, condition::SPECIFICATION_VALID), "False NewerEpoch");
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "True Available");
}
