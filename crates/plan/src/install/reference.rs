//! Renders the reference page of the manager's rights from their declarations.

use std::fmt::Write as _;

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::rights::{self, Grant};
use super::{DEFAULT_NAMESPACE, Options, Target};
use crate::controllers::{Controller, Selection};
use crate::namespaces::Namespaces;

const HEAD: &str = "# Rights

What the manager may do, and why. Generated from `crates/plan/src/install/rights.rs`; `hangar install --print` shows the
roles of an installation. How to limit the manager to some namespaces: [Install](../install.md#some-namespaces-only).
";

const CLUSTER_WIDE: &str = "
## In the whole cluster

By the ClusterRole `hangar-manager`. Names of CRDs are those of the chosen controllers.
";

const NARROW: &str = "
With `--namespaces` the ClusterRole has these rules and no others:
";

const OWN: &str = "
## In the manager's namespace

By the Role `hangar-manager`.
";

const CONTROLLERS: &str = "
## Where objects are looked after

By the ClusterRole `hangar-manager`, so in every namespace. With `--namespaces`, by a Role `hangar-controllers` in each of
these namespaces, and nowhere else.

### Every choice of controllers
";

/// The page.
#[must_use]
pub fn page() -> String {
    let options = |namespaces| Options {
        namespace: DEFAULT_NAMESPACE.to_owned(),
        image: String::new(),
        replicas: 1,
        controllers: Selection::all(),
        namespaces,
        target: Target::Service { namespace: DEFAULT_NAMESPACE.to_owned() },
        api_server: None,
        limits: None,
    };
    let narrow = Namespaces::Only(["a".to_owned()].into());
    let mut page = HEAD.to_owned();
    page.push_str(CLUSTER_WIDE);
    table(&mut page, &rights::cluster_wide(&options(Namespaces::All)));
    page.push_str(NARROW);
    table(&mut page, &rights::cluster_wide(&options(narrow)));
    page.push_str(OWN);
    table(&mut page, &rights::of_the_manager());
    page.push_str(CONTROLLERS);
    table(&mut page, &rights::of_every_controller());
    for controller in Controller::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n### {controller}");
        match rights::of_controller(controller).as_slice() {
            [] => page.push_str("\nNone: nothing acts on its kinds yet.\n"),
            grants => table(&mut page, grants),
        }
    }
    page
}

fn table(page: &mut String, grants: &[Grant]) {
    page.push_str("\n| group | resources | verbs | why |\n|---|---|---|---|\n");
    for Grant { rule, why } in grants {
        let (groups, verbs) = (groups(rule), rule.verbs.join(", "));
        let _ = writeln!(page, "| {groups} | {} | {verbs} | {why} |", resources(rule));
    }
}

fn groups(rule: &PolicyRule) -> String {
    let shown = |group: &String| if group.is_empty() { "core".to_owned() } else { format!("`{group}`") };
    rule.api_groups.iter().flatten().map(shown).collect::<Vec<_>>().join(", ")
}

fn resources(rule: &PolicyRule) -> String {
    let quoted = |texts: &Option<Vec<String>>| {
        texts.iter().flatten().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
    };
    let resources = quoted(&rule.resources);
    match &rule.resource_names {
        Some(_) => format!("{resources} named {}", quoted(&rule.resource_names)),
        None => resources,
    }
}
