//! The status: fields of both contract versions, and every condition through one door.
//!
//! Always written, from what is known now; what could not be read keeps its former value. Counters are there even when
//! zero. `initialized` means that the API server has served once, not that the tenant is furnished: nodes wait for it,
//! and what runs on nodes waits for them.

use hangar_api::conditions::{self, Actor, Finding, Part as SummaryPart, Waiting};
use hangar_api::controlplane::v1alpha1::{HostedControlPlaneInitialization, HostedControlPlaneStatus};
use hangar_api::naming;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::api_server::API_SERVER_READY;
use super::certificates::CERTIFICATES_VALID;
use super::controllers::{CONTROLLERS_READY, serving_version};
use super::delete::DELETING;
use super::endpoint::{self, ENDPOINT_READY};
use super::etcd::{self, ETCD_CLUSTER_HEALTHY};
use super::names::{COMPONENT_LABEL, Component};
use super::observed::{ObjectIdentity, Observed, WorkloadFacts};
use super::part::management_cluster;
use super::report::SETTINGS_EFFECTIVE;
use super::validate::Validated;
use crate::flow::Read;

/// Whether the API server serves people.
pub const AVAILABLE: &str = "Available";
/// Summary of everything but the tenant.
pub const READY: &str = "Ready";
/// Whether what people wrote can be rendered.
pub const SPECIFICATION_VALID: &str = "SpecificationValid";
/// Whether pods are being replaced.
pub const ROLLING_OUT: &str = "RollingOut";
/// Whether there are fewer API servers than wanted.
pub const SCALING_UP: &str = "ScalingUp";
/// Whether there are more API servers than wanted.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Whether somebody stopped reconciliation.
pub const PAUSED: &str = "Paused";

/// Gathers the status of one plan.
pub(super) struct Draft<'observed> {
    observed: &'observed Observed,
    status: HostedControlPlaneStatus,
}

impl<'observed> Draft<'observed> {
    /// Begins with what was written last.
    pub(super) fn new(observed: &'observed Observed) -> Self {
        let mut status = observed.control_plane.status.clone().unwrap_or_default();
        status.external_managed_control_plane = Some(true);
        status.observed_generation = observed.control_plane.metadata.generation;
        Self { observed, status }
    }

    pub(super) fn finding(&mut self, finding: Finding) {
        let generation = self.observed.control_plane.metadata.generation;
        conditions::set(&mut self.status, finding, generation, self.observed.now);
    }

    pub(super) fn paused(&mut self, is_paused: bool) {
        self.finding(if is_paused {
            let waiting = Waiting::new(
                Actor::ClusterOwner,
                "spec.paused of the Cluster or the annotation to be removed",
            );
            Finding::raised(PAUSED, "Paused", &waiting)
        } else {
            Finding::clear(PAUSED, "NotPaused")
        });
    }

    /// Why there is nothing to serve.
    pub(super) fn unavailable(&mut self, reason: &str, waiting: &Waiting) {
        self.finding(Finding::fails(AVAILABLE, reason, waiting));
        self.finding(Finding::fails(READY, reason, waiting));
    }

    /// Its API servers go first: whoever asks is told so from the beginning.
    pub(super) fn leaving(&mut self) {
        self.unavailable("Deleting", &Waiting::new(Actor::Hangar, "the control plane to be gone"));
        self.status.ready = Some(false);
    }

    /// What people wrote cannot be rendered.
    pub(super) fn invalid(&mut self, reason: &str, waiting: &Waiting) {
        self.finding(Finding::fails(SPECIFICATION_VALID, reason, waiting));
        self.left_alone(reason, waiting);
    }

    /// Nothing is done. What runs already stays available.
    pub(super) fn left_alone(&mut self, reason: &str, waiting: &Waiting) {
        self.finding(Finding::fails(READY, reason, waiting));
        if conditions::get(&self.status, AVAILABLE).is_none() {
            self.finding(Finding::fails(AVAILABLE, reason, waiting));
        }
    }

    /// Counters of the API server's Deployment. What was not read stays as it was, but is never absent.
    pub(super) fn counters(&mut self) {
        let facts = match &self.observed.api_server {
            Read::Unknown(_) => None,
            read => Some(read.iter().next().cloned().unwrap_or_default()),
        };
        let wanted = self.observed.control_plane.spec.replicas;
        let status = &mut self.status;
        if let Some(WorkloadFacts { existing, updated, ready, .. }) = facts {
            status.replicas = Some(existing);
            status.ready_replicas = Some(ready);
            // Ready is available: the wait after it is only for rollouts.
            status.available_replicas = Some(ready);
            status.up_to_date_replicas = Some(updated);
            status.updated_replicas = Some(updated);
            status.unavailable_replicas = Some((wanted - ready).max(0));
        }
        for count in [
            &mut status.replicas,
            &mut status.ready_replicas,
            &mut status.available_replicas,
            &mut status.up_to_date_replicas,
            &mut status.updated_replicas,
            &mut status.unavailable_replicas,
        ] {
            count.get_or_insert_default();
        }
        if let Some(version) = serving_version(self.observed) {
            status.version = Some(version.to_string());
        }
        if let Read::One(service) = &self.observed.service {
            status.legacy_ip = service.ingress_ips.first().cloned();
        }
    }

    /// What is true of a control plane that can be rendered.
    pub(super) fn rendered(&mut self, validated: &Validated<'_>, findings: Vec<Finding>) {
        if !findings.iter().any(|finding| finding.type_() == SETTINGS_EFFECTIVE) {
            conditions::remove(&mut self.status, SETTINGS_EFFECTIVE);
        }
        self.finding(Finding::holds(SPECIFICATION_VALID, "Valid"));
        for finding in findings {
            self.finding(finding);
        }
        let cluster = naming::label_value(validated.names.cluster());
        self.status.selector = Some(format!(
            "{}={cluster},{COMPONENT_LABEL}={}",
            hangar_api::names::CLUSTER_NAME_LABEL,
            Component::ApiServer.as_str()
        ));
        self.status.etcd_volume_size = Some(Quantity(validated.volume.clone()));
        let available = self.available(validated);
        let is_available = available.status() == conditions::Status::True;
        self.finding(available);
        self.status.ready = Some(is_available);
        let is_initialized = is_available || self.status.initialized.unwrap_or_default();
        self.status.initialized = Some(is_initialized);
        self.status.initialization =
            Some(HostedControlPlaneInitialization { control_plane_initialized: Some(is_initialized) });
        self.movements(validated);
        let parts =
            [CERTIFICATES_VALID, ETCD_CLUSTER_HEALTHY, API_SERVER_READY, CONTROLLERS_READY, ENDPOINT_READY]
                .map(SummaryPart::positive);
        self.finding(conditions::summary(&self.status, READY, &parts));
        let refused = self.observed.troubles.iter();
        let refused = refused.filter_map(|(step, words)| Some((ObjectIdentity::applied_by(step)?, words)));
        if let Some((object, words)) = refused.min() {
            let waiting = Waiting::new(Actor::Operator, format!("{object} to be accepted")).because(words);
            self.finding(Finding::fails(READY, "ObjectRefused", &waiting));
        }
    }

    fn available(&self, validated: &Validated<'_>) -> Finding {
        let observed = self.observed;
        let unread = |what: &str, why: &str| {
            let waiting = Waiting::new(Actor::Hangar, format!("a look at {what}")).because(why);
            Finding::unknown(AVAILABLE, "NotRead", &waiting)
        };
        let ready = match &observed.api_server {
            Read::Unknown(unknown) => return unread("the API server's Deployment", &unknown.why),
            read => read.iter().next().map_or(0, |facts| facts.ready),
        };
        let members = etcd::membership(validated).members;
        let healthy = match &observed.etcd {
            Read::Unknown(unknown) => return unread("etcd's StatefulSet", &unknown.why),
            read => read.iter().next().map_or(0, |facts| facts.ready),
        };
        if ready == 0 {
            let waiting = Waiting::new(management_cluster(), "an API server to be ready");
            return Finding::fails(AVAILABLE, "NoAPIServer", &waiting);
        }
        if healthy < etcd::quorum(members) {
            let on = format!("etcd's members, {healthy} of {members} are ready");
            return Finding::fails(AVAILABLE, "NoQuorum", &Waiting::new(management_cluster(), on));
        }
        if endpoint::known(observed, validated).is_none() {
            let waiting = super::exposure::reach(observed, validated).err();
            let waiting = waiting.unwrap_or_else(|| Waiting::new(Actor::Hangar, "an endpoint"));
            return Finding::fails(AVAILABLE, "NoEndpoint", &waiting);
        }
        Finding::holds(AVAILABLE, "Available")
    }

    fn movements(&mut self, validated: &Validated<'_>) {
        let facts = match &self.observed.api_server {
            Read::Unknown(_) => return,
            read => read.iter().next().cloned(),
        };
        let wanted = validated.replicas;
        let existing = facts.as_ref().map_or(0, |facts| facts.existing);
        let moving = |type_: &str, is_moving: bool, on: String| {
            if is_moving {
                Finding::raised(type_, type_, &Waiting::new(management_cluster(), on))
            } else {
                Finding::clear(type_, &format!("Not{type_}"))
            }
        };
        let is_rolling = facts.is_some_and(|facts| facts.updated < facts.existing || !facts.is_observed);
        self.finding(moving(ROLLING_OUT, is_rolling, "API servers to be replaced".to_owned()));
        self.finding(moving(
            SCALING_UP,
            existing < wanted,
            format!("{wanted} API servers, {existing} are there"),
        ));
        let is_shrinking = existing > wanted && !is_rolling;
        self.finding(moving(
            SCALING_DOWN,
            is_shrinking,
            format!("{wanted} API servers, {existing} are there"),
        ));
        self.finding(Finding::clear(DELETING, "NotDeleting"));
    }

    pub(super) fn finish(self) -> HostedControlPlaneStatus {
        self.status
    }
}
