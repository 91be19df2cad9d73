//! The reference pages of the book, generated from the CRDs.
//!
//! There is one page per kind: every version with every field, its type, its checks, and its description. People search
//! such a page, so every field has its full path.

use std::collections::BTreeSet;
use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The page of a kind as Markdown.
pub fn page(definition: &CustomResourceDefinition) -> String {
    let names = &definition.spec.names;
    let mut text = format!("# {}\n\n", names.kind);
    let short = names.short_names.iter().flatten().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let _ = writeln!(text, "Group `{}`, plural `{}`.", definition.spec.group, names.plural);
    if !short.is_empty() {
        let _ = writeln!(text, "Short names: {}.", short.join(", "));
    }
    for version in definition.spec.versions.iter().rev() {
        let stored = if version.storage { ", stored" } else { "" };
        let deprecated = if version.deprecated == Some(true) { ", deprecated" } else { "" };
        let _ = writeln!(text, "\n## {}{stored}{deprecated}\n", version.name);
        let Some(root) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
            continue;
        };
        if let Some(description) = &root.description {
            let _ = writeln!(text, "{}\n", one_line(description));
        }
        let _ = writeln!(text, "| field | type | |\n|---|---|---|");
        fields(&mut text, "", root);
    }
    text
}

/// File name of the page.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}.md", definition.spec.names.singular.as_deref().unwrap_or(&definition.spec.names.plural))
}

fn fields(text: &mut String, prefix: &str, schema: &JSONSchemaProps) {
    let required: BTreeSet<&String> = schema.required.iter().flatten().collect();
    for (name, field) in schema.properties.iter().flatten() {
        // Every object has these: the reference omits them.
        if prefix.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let mut notes: Vec<String> = Vec::new();
        notes.extend(required.contains(name).then(|| "Required.".to_owned()));
        notes.extend(field.description.as_deref().map(one_line));
        notes.extend(checks(field));
        let _ = writeln!(text, "| `{path}` | {} | {} |", type_of(field), notes.join(" "));
        below(text, &path, field);
    }
}

/// The fields inside a list's items or a map's values, too.
fn below(text: &mut String, path: &str, field: &JSONSchemaProps) {
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &field.items {
        below(text, &format!("{path}[]"), items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &field.additional_properties {
        below(text, &format!("{path}.*"), values);
    }
    fields(text, path, field);
}

fn type_of(field: &JSONSchemaProps) -> String {
    if field.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".to_owned();
    }
    match field.type_.as_deref() {
        Some("array") => match &field.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => format!("list of {}", type_of(items)),
            _ => "list".to_owned(),
        },
        Some("object") => match &field.additional_properties {
            Some(JSONSchemaPropsOrBool::Schema(values)) => format!("map of {}", type_of(values)),
            _ => "object".to_owned(),
        },
        Some(name) => match field.format.as_deref() {
            Some(format) if name == "string" => format!("string ({format})"),
            _ => name.to_owned(),
        },
        None => "any".to_owned(),
    }
}

fn checks(field: &JSONSchemaProps) -> Vec<String> {
    let mut checks = Vec::new();
    if let Some(default) = &field.default {
        checks.push(format!("Default: `{}`.", escaped(&default.0.to_string())));
    }
    if let Some(values) = &field.enum_ {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", escaped(&value.0.to_string()))).collect();
        checks.push(format!("One of {}.", values.join(", ")));
    }
    match (field.minimum, field.maximum) {
        (Some(least), Some(most)) => checks.push(format!("From {least} to {most}.")),
        (Some(least), None) => checks.push(format!("At least {least}.")),
        (None, Some(most)) => checks.push(format!("At most {most}.")),
        (None, None) => {}
    }
    if let Some(pattern) = &field.pattern {
        checks.push(format!("Matches `{}`.", escaped(pattern)));
    }
    for rule in field.x_kubernetes_validations.iter().flatten() {
        let text = rule.message.as_deref().unwrap_or(&rule.rule);
        checks.push(format!("Rule: {}.", one_line(text).trim_end_matches('.')));
    }
    checks
}

fn one_line(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
