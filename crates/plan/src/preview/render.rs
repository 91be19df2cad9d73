//! Renders a preview as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::install;

use super::{Action, Change, Difference, Planned, Preview};

/// Longer values are cut: the field is what matters, and `-o yaml` has the whole.
const LONGEST: usize = 100;

/// The preview for people.
pub fn render(preview: &Preview) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    for warning in &preview.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    if !preview.warnings.is_empty() {
        text.push('\n');
    }
    if !preview.given.is_empty() {
        text.push_str("Your files\n");
        changes(&mut text, &preview.given);
        text.push('\n');
    }
    for planned in &preview.plans {
        plan(&mut text, planned);
        text.push('\n');
    }
    restarts(&mut text, preview);
    match text.trim_end() {
        "" => "nothing would change\n".to_owned(),
        text => format!("{text}\n"),
    }
}

/// Every object that would be made or changed, in full, each once.
pub fn to_yaml(preview: &Preview) -> Result<String, install::Error> {
    let all = preview.given.iter().chain(preview.plans.iter().flat_map(|planned| &planned.changes));
    let mut objects: Vec<Value> = Vec::new();
    for change in all.filter(|change| !change.object.is_null()) {
        let is_same = |object: &Value| {
            ["/kind", "/metadata/namespace", "/metadata/name"]
                .iter()
                .all(|field| object.pointer(field) == change.object.pointer(field))
        };
        match objects.iter_mut().find(|object| is_same(object)) {
            Some(object) => object.clone_from(&change.object),
            None => objects.push(change.object.clone()),
        }
    }
    install::to_yaml(&objects)
}

fn plan(text: &mut String, planned: &Planned) {
    let _ = writeln!(text, "{} {}/{}", planned.kind, planned.namespace, planned.name);
    if !planned.steps.is_empty() {
        text.push_str("  steps:\n");
        for step in &planned.steps {
            let _ = writeln!(text, "    {step}");
        }
    }
    changes(text, &planned.changes);
    if !planned.decisions.is_empty() {
        text.push_str("  decided:\n");
        for decision in &planned.decisions {
            let _ = writeln!(text, "    {}: {}", decision.what, decision.why);
        }
    }
    if !planned.waits.is_empty() {
        text.push_str("  waits for:\n");
        for wait in &planned.waits {
            let _ = writeln!(text, "    {} ({})", wait.on, wait.actor);
            for detail in wait.detail.iter().flat_map(|detail| detail.lines()) {
                let _ = writeln!(text, "      {detail}");
            }
        }
    }
}

fn changes(text: &mut String, all: &[Change]) {
    for (action, title) in
        [(Action::Create, "would create"), (Action::Change, "would change"), (Action::Delete, "would delete")]
    {
        let found: Vec<&Change> = all.iter().filter(|change| change.action == action).collect();
        if !found.is_empty() {
            let _ = writeln!(text, "  {title}:");
        }
        for Change { kind, name, summary, differences, .. } in found {
            let summary = if summary.is_empty() || action != Action::Create {
                String::new()
            } else {
                format!(": {summary}")
            };
            let _ = writeln!(text, "    {kind} {name}{summary}");
            for difference in differences {
                let _ = writeln!(text, "      {}", line(difference));
            }
        }
    }
}

/// `path: old -> new`.
fn line(difference: &Difference) -> String {
    let Difference { path, old, new } = difference;
    match (old, new) {
        (None, Some(new)) => format!("{path}: + {}", short(new)),
        (Some(old), None) => format!("{path}: - {}", short(old)),
        (old, new) => {
            let side = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
            format!("{path}: {} -> {}", side(old), side(new))
        }
    }
}

fn short(value: &Value) -> String {
    let owner = |item: &Value| {
        let (kind, name) = (item.get("kind")?.as_str()?, item.get("name")?.as_str()?);
        item.get("uid").map(|_| format!("{kind} {name}"))
    };
    let owners = value.as_array().and_then(|items| items.iter().map(owner).collect::<Option<Vec<_>>>());
    let text = owners.map_or_else(|| value.to_string(), |owners| owners.join(", "));
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Workloads whose pods start again, with the reason.
fn restarts(text: &mut String, preview: &Preview) {
    let all = preview.given.iter().chain(preview.plans.iter().flat_map(|planned| &planned.changes));
    let restarting: BTreeMap<String, &Change> = all
        .filter(|change| change.restarts)
        .map(|change| (format!("{} {}/{}", change.kind, change.namespace, change.name), change))
        .collect();
    for (name, change) in restarting {
        let paths = change.differences.iter().map(|difference| difference.path.as_str());
        let mut paths: Vec<&str> = paths.filter(|path| path.starts_with("spec.template")).collect();
        paths.dedup();
        let _ = writeln!(text, "would restart: the pods of {name}, because of {}", paths.join(", "));
    }
}
