//! Makes every write to the management cluster, for all controllers and all kinds.
//!
//! The version that a change or a deletion is tied to comes from the stores. The API server's answer goes into the
//! stores at once, so that the next plan of any controller sees it.

use hangar_kit::ObjectKey;
use hangar_kit::apply::{Applied, Applier};
use hangar_plan::flow::{Action, Outcome, Read, StepId, Target, Write, dynamic};
use hangar_plan::referred;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{
    DeleteParams, EvictParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::{DynamicObject, ObjectMeta};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Case, Edge, answer};
use crate::context::{Context, Kind};

/// Makes one write.
pub(super) async fn run<E: Edge>(case: &Case<'_, E>, applier: &Applier, write: &Write) -> Outcome {
    let (context, namespace) = (case.context, case.namespace());
    match &write.action {
        Action::Itself(fields) => case.merge(fields).await,
        Action::Change { target, fields } => match Place::of(context, namespace, &target.group, &target.kind)
        {
            Ok(place) => place.change(target, fields).await,
            Err(outcome) => outcome,
        },
        Action::Create { object, is_kept } => match Place::of_object(context, namespace, object) {
            Ok(place) if *is_kept => place.make_kept(applier, object).await,
            Ok(place) => place.make(E::FIELD_MANAGER, object).await,
            Err(outcome) => outcome,
        },
        Action::Evict { target } => evict(context, namespace, target).await,
        Action::Delete { target, is_foreground } => {
            match Place::of(context, namespace, &target.group, &target.kind) {
                Ok(place) => place.delete(target, *is_foreground).await,
                Err(outcome) => outcome,
            }
        }
    }
}

/// Brings an object of a plan to what is desired, or makes it.
pub(super) async fn keep(
    context: &Context,
    namespace: &str,
    applier: &Applier,
    object: &impl Serialize,
) -> Result<(), (StepId, Outcome)> {
    let object = dynamic(object);
    let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    let name = object.metadata.name.clone().unwrap_or_default();
    let failed = |outcome| (StepId::new("apply", "management", format!("{kind} {name}")), outcome);
    let place = Place::of_object(context, namespace, &object).map_err(failed)?;
    let live = place.kind.object(&place.key(&name));
    match applier.apply(&place.api, &object, live.as_ref()).await {
        Ok(applied) => {
            place.told(applied);
            Ok(())
        }
        Err(error) => Err(failed(answer::failed(error))),
    }
}

/// Where objects of a kind are, in one namespace.
struct Place {
    api: Api<DynamicObject>,
    kind: Kind,
    namespace: String,
}

impl Place {
    fn of(context: &Context, namespace: &str, group: &str, kind: &str) -> Result<Self, Outcome> {
        match context.kind(group, kind) {
            Read::One(kind) => {
                let api = Api::namespaced_with(context.client(), namespace, kind.resource());
                Ok(Self { api, kind, namespace: namespace.to_owned() })
            }
            Read::Unknown(unknown) => Err(Outcome::failed("KindUnknown", unknown.why)),
            Read::Absent | Read::Many(_) => {
                let why = format!("the CRD of {kind}.{group} is not installed, or names no contract version");
                Err(Outcome::failed("KindUnknown", why))
            }
        }
    }

    fn of_object(context: &Context, namespace: &str, object: &DynamicObject) -> Result<Self, Outcome> {
        let types = object.types.clone().unwrap_or_default();
        let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
        Self::of(context, namespace, group, &types.kind)
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.clone(), name)
    }

    /// Merges fields into exactly the object that was seen, in the version that the stores know.
    async fn change(&self, target: &Target, fields: &Value) -> Outcome {
        let Some(version) = self.kind.version(&self.key(&target.name), &target.uid) else {
            return Outcome::Stale;
        };
        let mut fields = fields.clone();
        fields["metadata"]["uid"] = json!(target.uid);
        fields["metadata"]["resourceVersion"] = json!(version);
        match self.api.patch(&target.name, &PatchParams::default(), &Patch::Merge(fields)).await {
            Ok(changed) => {
                let is_terminating = changed.metadata.deletion_timestamp.is_some();
                if is_terminating && changed.metadata.finalizers.iter().flatten().next().is_none() {
                    self.kind.removed(&self.key(&target.name), &target.uid);
                } else {
                    self.kind.written(&changed);
                }
                Outcome::Done
            }
            Err(error) => answer::kubernetes(error),
        }
    }

    /// One that exists is ours if the same owner manages it.
    async fn make(&self, manager: &str, object: &DynamicObject) -> Outcome {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let parameters = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        match self.api.create(&parameters, object).await {
            Ok(created) => {
                self.kind.written(&created);
                Outcome::Created(created.metadata.uid.unwrap_or_default())
            }
            Err(kube::Error::Api(status)) if status.code == 409 => match self.api.get_opt(name).await {
                Ok(Some(present)) if has_same_controller(&present.metadata, &object.metadata) => {
                    self.kind.written(&present);
                    Outcome::Done
                }
                Ok(Some(_)) => {
                    Outcome::refused(format!("{} {name} exists and is not ours", self.kind.name()))
                }
                Ok(None) => Outcome::Stale,
                Err(error) => answer::kubernetes(error),
            },
            Err(error) => answer::kubernetes(error),
        }
    }

    async fn make_kept(&self, applier: &Applier, object: &DynamicObject) -> Outcome {
        match applier.apply(&self.api, object, Read::Absent).await {
            Ok(Applied::Created(created)) => {
                self.kind.written(&created);
                Outcome::Created(created.metadata.uid.unwrap_or_default())
            }
            Ok(Applied::Terminating | Applied::Vanished) => Outcome::Stale,
            Ok(applied) => {
                self.told(applied);
                Outcome::Done
            }
            Err(error) => answer::failed(error),
        }
    }

    fn told(&self, applied: Applied<DynamicObject>) {
        if let Some(object) = applied.object() {
            self.kind.written(&object);
        }
    }

    async fn delete(&self, target: &Target, is_foreground: bool) -> Outcome {
        let propagation =
            if is_foreground { PropagationPolicy::Foreground } else { PropagationPolicy::Background };
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(target.uid.clone()), resource_version: None }),
            propagation_policy: Some(propagation),
            ..DeleteParams::default()
        };
        let answer = self.api.delete(&target.name, &parameters).await;
        let left = answer.as_ref().ok().and_then(|answer| answer.as_ref().left());
        // What has no finalizers is gone by the time of the answer.
        let stays = |object: &&DynamicObject| object.metadata.finalizers.iter().flatten().count() > 0;
        if let Some(object) = left.filter(stays) {
            self.kind.written(object);
            return Outcome::Done;
        }
        let outcome = answer::of_deletion(answer);
        if outcome.is_success() {
            self.kind.removed(&self.key(&target.name), &target.uid);
        }
        outcome
    }
}

/// The budget is asked, whoever else disrupts at the same moment. The pod is there until it has ended: its watch tells.
async fn evict(context: &Context, namespace: &str, target: &Target) -> Outcome {
    let preconditions = Some(Preconditions { uid: Some(target.uid.clone()), resource_version: None });
    let delete_options = Some(DeleteParams { preconditions, ..DeleteParams::default() });
    let parameters = EvictParams { delete_options, ..EvictParams::default() };
    let api: Api<Pod> = Api::namespaced(context.client(), namespace);
    answer::of_deletion(api.evict(&target.name, &parameters).await)
}

fn has_same_controller(left: &ObjectMeta, right: &ObjectMeta) -> bool {
    let uid = |metadata: &ObjectMeta| referred::controller(metadata).map(|owner| owner.uid.clone());
    uid(left).is_some() && uid(left) == uid(right)
}
