//! The common fields of Neutron's objects, read and written.

use serde_json::{Value, json};

use super::super::time::seconds;
use crate::http::{Attributes, Call, assign};
use crate::model::{Refusal, Standard};

/// Takes name, description, project and tags of a new object.
pub(super) fn take(call: &Call<'_>, attributes: &mut Attributes) -> Result<Standard, Refusal> {
    let name = attributes.text("name")?.unwrap_or_default();
    let description = attributes.text("description")?.unwrap_or_default();
    let (project, tenant) = (attributes.text("project_id")?, attributes.text("tenant_id")?);
    let project = project.or(tenant).unwrap_or_else(|| call.caller.project.clone());
    if project != call.caller.project && !call.caller.is_admin {
        let words = "Specifying 'project_id' other than the authenticated project in request requires admin privileges";
        return Err(Refusal::new(400, "HTTPBadRequest", words));
    }
    // Tags in the create call are honoured for the kinds that allow it; most clients tag afterwards.
    let tags = attributes.texts("tags")?.unwrap_or_default();
    let mut standard = Standard::new(&project, &name, &description, &call.draw);
    standard.tags.extend(tags);
    Ok(standard)
}

/// Takes what an update may change, and counts the revision.
pub(super) fn update(
    standard: &mut Standard,
    attributes: &mut Attributes,
    call_draw: &crate::model::Draw,
) -> Result<(), Refusal> {
    assign(&mut standard.name, attributes.text("name")?);
    assign(&mut standard.description, attributes.text("description")?);
    standard.touch(call_draw);
    Ok(())
}

/// Adds what all objects have to a view.
pub(super) fn add(view: &mut Value, standard: &Standard, with_name: bool) {
    if with_name {
        view["name"] = json!(standard.name);
    }
    view["description"] = json!(standard.description);
    view["tenant_id"] = json!(standard.project);
    view["project_id"] = json!(standard.project);
    view["tags"] = json!(standard.tags);
    view["created_at"] = json!(seconds(standard.created));
    view["updated_at"] = json!(seconds(standard.updated));
    view["revision_number"] = json!(standard.revision);
}
