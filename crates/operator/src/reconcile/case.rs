//! One object during one pass: its latest version after our own writes and, once it was read, its project in the cloud.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_kit::event::Recorder;
use hangar_kit::watch::Kept;
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::Outcome;
use hangar_plan::openstack;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};

use super::{Edge, Status, answer};
use crate::clouds::Project;
use crate::context::Context;

/// One object during one pass.
pub(crate) struct Case<'a, E: Edge> {
    pub(crate) edge: &'a E,
    pub(crate) context: &'a Context,
    /// What the edge keeps for this pass.
    pub(crate) scratch: E::Scratch,
    seen: &'a Arc<Kept<E::Root>>,
    state: Mutex<State<E::Root>>,
}

struct State<K> {
    /// None when our own write let the object go.
    root: Option<K>,
    project: Option<Arc<Project>>,
    is_put_off: bool,
}

impl<'a, E: Edge> Case<'a, E> {
    pub(super) fn new(edge: &'a E, context: &'a Context, seen: &'a Arc<Kept<E::Root>>) -> Self {
        let state = Mutex::new(State { root: Some(seen.value.clone()), project: None, is_put_off: false });
        Self { edge, context, scratch: E::Scratch::default(), seen, state }
    }

    /// As the pass found it.
    pub(crate) fn seen(&self) -> &Kept<E::Root> {
        self.seen
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.seen.key
    }

    pub(crate) fn namespace(&self) -> &str {
        self.seen.key.namespace_or_empty()
    }

    /// As our own writes left it; none when they let it go.
    pub(crate) fn root(&self) -> Option<E::Root> {
        self.state().root.clone()
    }

    /// What the steps of this pass go through.
    pub(crate) fn set_project(&self, project: Arc<Project>) {
        self.state().project = Some(project);
    }

    /// The project that was read, and the id that everything made there carries.
    pub(crate) fn access(&self) -> Option<(Arc<Project>, String)> {
        let state = self.state();
        let annotations = state.root.as_ref()?.meta().annotations.as_ref();
        Some((state.project.clone()?, openstack::owner_id(annotations)?))
    }

    /// What was to be read is being read for all who want it, and wakes this object when it is there. A pass that waited
    /// for it would keep a worker from those that have theirs.
    pub(crate) fn put_off(&self) {
        self.state().is_put_off = true;
    }

    pub(super) fn is_put_off(&self) -> bool {
        self.state().is_put_off
    }

    fn state(&self) -> MutexGuard<'_, State<E::Root>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn api(&self) -> Api<E::Root> {
        Api::namespaced(self.context.client(), self.namespace())
    }

    /// Merges fields into it, if it is still what our last write, or the read, showed.
    pub(super) async fn merge(&self, fields: &Value) -> Outcome {
        let Some(root) = self.root() else { return Outcome::Stale };
        let mut fields = fields.clone();
        fields["metadata"]["uid"] = json!(root.meta().uid);
        fields["metadata"]["resourceVersion"] = json!(root.meta().resource_version);
        let name = &self.key().name;
        match self.api().patch(name, &PatchParams::default(), &Patch::Merge(fields)).await {
            Ok(changed) => {
                self.written(changed);
                Outcome::Done
            }
            Err(error) => answer::kubernetes(error),
        }
    }

    /// Shows an answer to the store at once: the next pass must not plan from what was before.
    fn written(&self, changed: E::Root) {
        let watch = E::watch(&self.context.watches);
        let meta = changed.meta();
        if meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().next().is_none() {
            watch.removed(self.key(), &self.seen.uid);
            self.state().root = None;
        } else {
            watch.written(changed.clone());
            self.state().root = Some(changed);
        }
    }

    /// Writes the status as a whole if it differs, tied to the version it was decided from. Nothing is sent where nothing
    /// differs, and nothing is written to an object that is gone; one that changed meanwhile wakes us anyway.
    pub(super) async fn write_status(&self, recorder: &Recorder, status: &Status<E>) -> Result<(), Error> {
        let Some(root) = self.root().filter(|root| E::status(root) != Some(status)) else { return Ok(()) };
        let malformed = |problem: serde_json::Error| Error::Malformed {
            what: format!("the status of {}", self.key()),
            problem: problem.to_string(),
        };
        let operations = json!([
            { "op": "test", "path": "/metadata/uid", "value": root.meta().uid },
            // The API server compares what it finds here with what is stored: a conflict if they differ.
            { "op": "replace", "path": "/metadata/resourceVersion", "value": root.meta().resource_version },
            { "op": "add", "path": "/status", "value": serde_json::to_value(status).map_err(malformed)? },
        ]);
        let patch = Patch::<()>::Json(serde_json::from_value(operations).map_err(malformed)?);
        let sent = self.api().patch_status(&self.key().name, &PatchParams::default(), &patch).await;
        match sent {
            Ok(changed) => {
                self.written(changed);
                for event in self.edge.news(&root, E::status(&root), status) {
                    recorder.record(&root.object_ref(&()), &event).await;
                }
                Ok(())
            }
            // 422: the uid test failed, so another object has the name.
            Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 422) => Ok(()),
            Err(kube::Error::Api(answer)) if answer.code == 409 => {
                Err(Error::Stale { what: self.key().to_string() })
            }
            Err(error) => Err(Error::api(format!("write the status of {}", self.key()), error)),
        }
    }
}
