//! Flags of programs: which are the control plane's own, and which users may set.
//!
//! Programs take `-` and `_` in the name of a flag for the same, so names are compared as the programs see them.

use std::collections::BTreeMap;

use super::program::Program;

const ENABLED_PLUGINS: &str = "enable-admission-plugins";
const DISABLED_PLUGINS: &str = "disable-admission-plugins";

/// Keeps kubelets to their own node and its pods.
pub(super) const NODE_RESTRICTION: &str = "NodeRestriction";

/// Plugins that cannot be disabled: what Hangar puts into the tenant relies on them, and so does the line between a
/// node and the rest of the cluster.
const NEEDED_PLUGINS: [&str; 7] = [
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "NamespaceLifecycle",
    NODE_RESTRICTION,
    "Priority",
    "ServiceAccount",
];

/// Flags of a program.
#[derive(Debug)]
pub(super) struct Flags {
    program: &'static Program,
    /// What the control plane needs to work.
    pub(super) owned: BTreeMap<&'static str, String>,
    /// What users may change.
    pub(super) suggested: BTreeMap<&'static str, String>,
}

impl Flags {
    /// Flags from pairs.
    pub(super) fn new<const OWNED: usize, const SUGGESTED: usize>(
        program: &'static Program,
        owned: [(&'static str, String); OWNED],
        suggested: [(&'static str, &str); SUGGESTED],
    ) -> Self {
        let suggested = suggested.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        Self { program, owned: owned.into(), suggested }
    }

    /// The command line, in the order of names. What users must not set is left out; `unsupported` tells them.
    pub(super) fn merged(self, given: &BTreeMap<String, String>) -> Vec<String> {
        debug_assert!(self.owned.keys().all(|name| self.program.owns(name)), "{:?}", self.owned);
        let mut flags: BTreeMap<String, String> =
            self.suggested.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        flags.extend(given.iter().filter_map(|(name, value)| accepted(self.program, name, value).ok()));
        flags.extend(self.owned.into_iter().map(|(name, value)| (name.to_owned(), value)));
        flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

/// A flag as the program gets it, or why it does not.
pub(super) fn accepted(program: &Program, name: &str, value: &str) -> Result<(String, String), String> {
    let name = name.trim_start_matches('-').replace('_', "-").to_ascii_lowercase();
    if name.is_empty() || name.contains(|letter: char| letter == '=' || letter.is_whitespace()) {
        return Err("it is no name of a flag".to_owned());
    }
    if program.owns(&name) {
        return Err(format!(
            "--{name} of {} is set by Hangar: the control plane needs its own value",
            program.name
        ));
    }
    let plugins = || value.split(',').map(str::trim).filter(|plugin| !plugin.is_empty());
    match name.as_str() {
        DISABLED_PLUGINS => {
            let needed: Vec<&str> = plugins().filter(|plugin| NEEDED_PLUGINS.contains(plugin)).collect();
            if !needed.is_empty() {
                return Err(format!("--{name}: the control plane needs {}", needed.join(", ")));
            }
        }
        ENABLED_PLUGINS if !plugins().any(|plugin| plugin == NODE_RESTRICTION) => {
            let all: Vec<&str> = [NODE_RESTRICTION].into_iter().chain(plugins()).collect();
            return Ok((name, all.join(",")));
        }
        _ => {}
    }
    Ok((name, value.to_owned()))
}
