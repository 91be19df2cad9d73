//! Glance v2: the images of the configuration. They can be listed, shown and filtered, not changed.

use serde_json::{Value, json};
use uuid::Uuid;

use super::call::Call;
use super::list::page;
use super::reply::Reply;
use super::time::seconds;
use crate::model::{Image, Refusal};

/// Glance's page where no limit is given.
const DEFAULT_LIMIT: usize = 25;
/// Glance's largest page.
const LARGEST_LIMIT: usize = 1000;

/// What is answered without a token.
pub(crate) fn versions(call: &Call<'_>, parts: &[&str]) -> Option<Reply> {
    let status = match parts {
        [] => 300,
        ["versions"] => 200,
        _ => return None,
    };
    let self_link = call.url("/image/v2/");
    let version = |id: &str, status: &str| json!({"id": id, "status": status, "links": [{"rel": "self", "href": self_link}]});
    let all: Vec<Value> = (0..=17)
        .rev()
        .filter(|minor| !matches!(minor, 8 | 10 | 11 | 12 | 14))
        .map(|minor| version(&format!("v2.{minor}"), if minor == 17 { "CURRENT" } else { "SUPPORTED" }))
        .collect();
    Some(Reply::json(status, &json!({"versions": all})))
}

/// What needs a token.
pub(crate) fn answer(call: &mut Call<'_>, parts: &[&str]) -> Result<Reply, Refusal> {
    match (call.request.method.as_str(), parts) {
        ("GET", ["v2", "images"]) => list(call),
        ("GET", ["v2", "images", id]) => Ok(Reply::ok(&view(find(call, id)?))),
        ("GET", ["v2", "images", id, "members"]) => {
            find(call, id)?;
            Ok(Reply::ok(&json!({"members": [], "schema": "/v2/schemas/members"})))
        }
        ("GET", ["v2", "schemas", "image"]) => Ok(Reply::ok(&schema())),
        ("GET", ["v2", "schemas", "images"]) => {
            let items = json!({"type": "array", "items": schema()});
            Ok(Reply::ok(&json!({"name": "images", "properties": {"images": items}})))
        }
        ("POST", ["v2", "images"]) => Err(refused()),
        ("PUT" | "PATCH" | "DELETE" | "POST", ["v2", "images", id, ..]) => {
            find(call, id)?;
            Err(refused())
        }
        _ => Err(Refusal::not_found("NotFound", "The resource could not be found.")),
    }
}

fn refused() -> Refusal {
    Refusal::forbidden(
        "You are not authorized to complete this action: images come from the cloud's configuration.",
    )
}

fn find<'a>(call: &'a Call<'_>, id: &str) -> Result<&'a Image, Refusal> {
    let image = Uuid::parse_str(id).ok().and_then(|id| call.model.images.get(&id));
    image.ok_or_else(|| Refusal::not_found("ImageNotFound", format!("No image found with ID {id}")))
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let request = call.request;
    let mut images: Vec<&Image> = call.model.images.values().collect();
    images.sort_by(|one, other| one.name.cmp(&other.name).then(one.id.cmp(&other.id)));
    let mut views: Vec<Value> = images.into_iter().map(view).collect();
    for (key, wanted) in &request.query {
        match key.as_str() {
            "limit" | "marker" | "sort" | "sort_key" | "sort_dir" | "member_status" => {}
            "tag" => views.retain(|view| {
                view["tags"].as_array().is_some_and(|tags| tags.iter().any(|it| it == wanted))
            }),
            "visibility" if wanted == "all" => {}
            "protected" | "os_hidden" => {
                views.retain(|view| view[key] == wanted.eq_ignore_ascii_case("true"));
            }
            _ => views.retain(|view| is_one_of(&view[key], wanted)),
        }
    }
    let limit = request.parameter("limit");
    let largest = if limit.is_some() { LARGEST_LIMIT } else { DEFAULT_LIMIT };
    let (page, next) = page(request, views, "id", largest)?;
    let mut body =
        json!({"images": page, "first": strip(&request.path_and_query()), "schema": "/v2/schemas/images"});
    if let Some(next) = next {
        body["next"] = json!(strip(&next));
    }
    Ok(Reply::ok(&body))
}

/// `in:a,b` means one of them.
fn is_one_of(have: &Value, wanted: &str) -> bool {
    let have = have.as_str().unwrap_or_default();
    match wanted.strip_prefix("in:") {
        Some(choices) => choices.split(',').any(|choice| choice.trim_matches('"') == have),
        None => have == wanted.trim_matches('"'),
    }
}

/// Glance's links are relative to its own root.
fn strip(path: &str) -> &str {
    path.strip_prefix("/image").unwrap_or(path)
}

fn view(image: &Image) -> Value {
    let mut view = json!({
        "id": image.id,
        "name": image.name,
        "status": "active",
        "visibility": "public",
        "protected": false,
        "os_hidden": false,
        "owner": image.owner,
        "tags": image.tags,
        "size": 0,
        "virtual_size": null,
        "min_disk": 0,
        "min_ram": 0,
        "checksum": null,
        "os_hash_algo": null,
        "os_hash_value": null,
        "container_format": "bare",
        "disk_format": "raw",
        "created_at": seconds(image.created),
        "updated_at": seconds(image.created),
        "self": format!("/v2/images/{}", image.id),
        "file": format!("/v2/images/{}/file", image.id),
        "schema": "/v2/schemas/image",
    });
    for (name, value) in &image.properties {
        if view.get(name).is_none() {
            view[name] = json!(value);
        }
    }
    view
}

fn schema() -> Value {
    let text = json!({"type": ["null", "string"]});
    json!({
        "name": "image",
        "properties": {"id": text, "name": text, "status": text, "owner": text, "visibility": text},
        "additionalProperties": {"type": "string"},
    })
}
