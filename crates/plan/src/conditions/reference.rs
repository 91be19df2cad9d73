//! Renders the reference page of all conditions from their declarations.

use std::fmt::Write as _;

use hangar_api::conditions::{ConditionType, Origin, Polarity};

use super::{catalogue, shared};

const HEAD: &str = "# Conditions

The conditions that the controllers write, with their reasons. What to do about them:
[Troubleshooting](../troubleshooting.md). Generated from `crates/plan/src/*/conditions.rs`.

Where several are listed, the message of the condition names the one who must act.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    section(&mut page, "Every kind", shared::ALL.iter());
    for known in catalogue() {
        section(&mut page, known.kind, known.types.iter().copied().flatten());
    }
    page
}

fn section<'a>(page: &mut String, title: &str, types: impl Iterator<Item = &'a ConditionType>) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "\n## {title}");
    for condition in types {
        let good = if condition.polarity == Polarity::Positive { "True" } else { "False" };
        let (name, means) = (condition.name, condition.means.trim());
        let others = match condition.origin {
            Origin::Own => None,
            Origin::Merged => Some(format!("the reasons `{name}`, `Not{name}` and `{name}Unknown`")),
            Origin::Mirrored => Some("the reasons of the condition that it mirrors".to_owned()),
        };
        let has = if condition.declared().next().is_some() { "can also have" } else { "has" };
        let origin = others.map(|others| format!(" It {has} {others}.")).unwrap_or_default();
        let _ = writeln!(page, "\n### {name}\n\n{means} {good} is good.{origin}");
        let reasons: Vec<String> = condition
            .declared()
            .map(|reason| {
                let who: Vec<String> = reason.who.iter().map(ToString::to_string).collect();
                format!("| `{}` | {} | {} | {} |", reason.name, reason.status, who.join(", "), reason.means)
            })
            .collect();
        if !reasons.is_empty() {
            let head = "| reason | status | who acts | meaning |\n|---|---|---|---|";
            let _ = writeln!(page, "\n{head}\n{}", reasons.join("\n"));
        }
    }
}
