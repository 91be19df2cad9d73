//! Lists: filters, order, pages.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::call::Call;
use super::reply::Reply;
use super::request::Request;
use crate::model::Refusal;

/// Query parameters that are no filters.
const CONTROLS: [&str; 10] = [
    "fields",
    "limit",
    "marker",
    "page_reverse",
    "sort_key",
    "sort_dir",
    "tags",
    "tags-any",
    "not-tags",
    "not-tags-any",
];

/// A list of Neutron: filtered by any attribute, sorted, in pages, with the fields that were asked for.
pub(crate) fn network_list(
    call: &Call<'_>,
    collection: &str,
    mut views: Vec<Value>,
) -> Result<Reply, Refusal> {
    let request = call.request;
    check_filters(request, views.first())?;
    views.retain(|view| fits(request, view) && fits_tags(request, view));
    sort(request, &mut views);
    if let Some(marker) = request.parameter("marker").filter(|it| views.iter().all(|view| view["id"] != **it))
    {
        // Neutron looks for the object first, whatever its kind.
        let words = format!("{collection} {marker} could not be found.");
        return Err(Refusal::not_found("ObjectNotFound", words));
    }
    let (mut page, next) = page(request, views, "id", usize::MAX)?;
    let fields: Vec<&String> =
        request.query.iter().filter(|(key, _)| key == "fields").map(|(_, it)| it).collect();
    if !fields.is_empty() {
        for view in &mut page {
            if let Value::Object(map) = view {
                map.retain(|key, _| fields.contains(&key));
            }
        }
    }
    let mut body = Map::new();
    body.insert(collection.into(), Value::Array(page));
    if let Some(next) = next {
        let href = call.url(&next);
        body.insert(format!("{collection}_links"), json!([{"rel": "next", "href": href}]));
    }
    Ok(Reply::ok(&Value::Object(body)))
}

fn check_filters(request: &Request, sample: Option<&Value>) -> Result<(), Refusal> {
    let Some(Value::Object(sample)) = sample else { return Ok(()) };
    let unknown: Vec<String> = request
        .query
        .iter()
        .filter(|(key, _)| !CONTROLS.contains(&key.as_str()) && !sample.contains_key(key))
        // Attributes that only administrators see are filters all the same.
        .filter(|(key, _)| !key.starts_with("provider:") && !key.starts_with("binding:") && key != "shared")
        .map(|(key, _)| format!("'{key}'"))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Refusal::bad(format!("[{}] is invalid attribute for filtering", unknown.join(", "))))
}

/// Whether every filter has a value that the view has; of one filter given twice, either will do.
fn fits(request: &Request, view: &Value) -> bool {
    let filters = request.query.iter().filter(|(key, _)| !CONTROLS.contains(&key.as_str()));
    filters.clone().all(|(key, wanted)| {
        let Some(have) = view.get(key) else { return true };
        // `fixed_ips=ip_address=10.0.0.5&fixed_ips=subnet_id=...` are two filters.
        let part = |value: &str| value.split_once('=').map(|(part, _)| part.to_owned());
        let is_about_the_same = |value: &str| key != "fixed_ips" || part(value) == part(wanted);
        let mut rivals = filters.clone().filter(|(other, value)| other == key && is_about_the_same(value));
        rivals.any(|(_, wanted)| is_equal(have, wanted))
    })
}

fn is_equal(have: &Value, wanted: &str) -> bool {
    match have {
        Value::Null => wanted.is_empty() || wanted == "None",
        Value::Bool(have) => match wanted.to_ascii_lowercase().as_str() {
            "true" | "1" => *have,
            "false" | "0" => !have,
            _ => false,
        },
        Value::Number(have) => have.to_string() == wanted,
        Value::String(have) => have == wanted,
        Value::Array(items) => items.iter().any(|item| is_equal(item, wanted)),
        // `fixed_ips=ip_address=10.0.0.5`
        Value::Object(map) => wanted
            .split_once('=')
            .is_some_and(|(key, wanted)| map.get(key).is_some_and(|have| is_equal(have, wanted))),
    }
}

fn fits_tags(request: &Request, view: &Value) -> bool {
    let has = |tag: &&str| view["tags"].as_array().is_some_and(|tags| tags.iter().any(|have| have == *tag));
    let test = |name: &str, test: &dyn Fn(Vec<&str>) -> bool| {
        request.query.iter().filter(|(key, _)| key == name).all(|(_, tags)| test(tags.split(',').collect()))
    };
    test("tags", &|tags| tags.iter().all(has))
        && test("tags-any", &|tags| tags.iter().any(has))
        && test("not-tags", &|tags| !tags.iter().all(has))
        && test("not-tags-any", &|tags| !tags.iter().any(has))
}

fn sort(request: &Request, views: &mut [Value]) {
    let values = |name: &str| -> Vec<&String> {
        request.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value).collect()
    };
    let (keys, directions) = (values("sort_key"), values("sort_dir"));
    if keys.is_empty() {
        return;
    }
    views.sort_by(|one, other| {
        keys.iter().enumerate().fold(Ordering::Equal, |ordering, (index, key)| {
            let next = compare(&one[key.as_str()], &other[key.as_str()]);
            let is_descending = directions.get(index).is_some_and(|direction| *direction == "desc");
            ordering.then(if is_descending { next.reverse() } else { next })
        })
    });
}

fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Number(one), Value::Number(other)) => one.as_i64().cmp(&other.as_i64()),
        _ => one.to_string().cmp(&other.to_string()),
    }
}

/// The page that limit and marker ask for, and the path of the next one. A full page has a next one, though that may
/// be empty: so do the real services.
pub(crate) fn page(
    request: &Request,
    mut views: Vec<Value>,
    key: &str,
    largest: usize,
) -> Result<(Vec<Value>, Option<String>), Refusal> {
    if let Some(marker) = request.parameter("marker") {
        let Some(at) = views.iter().position(|view| view[key] == marker) else {
            return Err(Refusal::bad(format!("marker [{marker}] not found")));
        };
        views.drain(..=at);
    }
    let limit = match request.parameter("limit") {
        None => None,
        Some(text) => match text.parse::<usize>() {
            Ok(0) => None,
            Ok(limit) => Some(limit),
            Err(_) => return Err(Refusal::bad("limit param must be an integer")),
        },
    };
    let limit = limit.unwrap_or(largest).min(largest);
    views.truncate(limit);
    let next = match views.last().filter(|_| views.len() == limit) {
        Some(last) => last[key].as_str().map(|marker| request.next_page(marker)),
        None => None,
    };
    Ok((views, next))
}
