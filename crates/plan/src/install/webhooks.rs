//! The webhook configurations: which writes of which kinds the API server sends to the manager first.
//!
//! They are rendered without a certificate authority: the manager issues its own and fills it in, and again if somebody
//! changes it.

use std::collections::BTreeSet;

use hangar_api::crd::ConversionTarget;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};

use super::{NAME, Options, metadata};
use crate::admission::{CLEANERS, RULES, Rules};

/// Carried by webhook configurations and CRDs whose webhook is ours: the manager leaves others alone.
pub const WEBHOOK_LABEL: &str = "hangar.cluster.x-k8s.io/webhook";
/// The Service in front of the managers' webhook ports.
pub const WEBHOOK_SERVICE: &str = "hangar-webhook";
pub(super) const WEBHOOK_SERVICE_PORT: u16 = 443;
/// Where objects get their defaults.
pub const MUTATING_PATH: &str = "/mutate";
/// Where objects are checked.
pub const VALIDATING_PATH: &str = "/validate";

/// Our functions take microseconds; what takes longer is a manager that is gone.
const TIMEOUT_SECONDS: i32 = 10;

/// Where the API server finds the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The Service that is installed with the manager, in this namespace.
    Service {
        /// The manager's namespace.
        namespace: String,
    },
    /// A manager outside the cluster, such as `https://192.0.2.1:9443`.
    Url(String),
}

impl Target {
    pub(super) fn conversion(&self) -> ConversionTarget {
        match self {
            Self::Service { namespace } => ConversionTarget::Service {
                namespace: namespace.clone(),
                name: WEBHOOK_SERVICE.to_owned(),
                port: WEBHOOK_SERVICE_PORT,
            },
            Self::Url(base) => ConversionTarget::Url { base: base.clone() },
        }
    }

    fn client_config(&self, path: &str) -> WebhookClientConfig {
        match self {
            Self::Service { namespace } => WebhookClientConfig {
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: WEBHOOK_SERVICE.to_owned(),
                    path: Some(path.to_owned()),
                    port: Some(i32::from(WEBHOOK_SERVICE_PORT)),
                }),
                ..WebhookClientConfig::default()
            },
            Self::Url(base) => WebhookClientConfig {
                url: Some(format!("{}{path}", base.trim_end_matches('/'))),
                ..WebhookClientConfig::default()
            },
        }
    }
}

/// Whether the kind's controller is chosen.
fn is_chosen(rules: &Rules, options: &Options) -> bool {
    options.controllers.iter().any(|controller| {
        let (group, plurals) = controller.kinds();
        group == rules.group && plurals.contains(&rules.plural)
    })
}

fn configuration_metadata() -> ObjectMeta {
    let mut metadata = metadata(NAME, None);
    metadata.labels.get_or_insert_default().insert(WEBHOOK_LABEL.to_owned(), String::new());
    metadata
}

fn webhook_name(rules: &Rules) -> String {
    format!("{}.{}", rules.plural, rules.group)
}

fn requests_of(rules: &Rules, resource: &str, operations: &[&str]) -> RuleWithOperations {
    let one = |text: &str| Some(vec![text.to_owned()]);
    RuleWithOperations {
        api_groups: one(rules.group),
        api_versions: one("*"),
        operations: Some(operations.iter().copied().map(str::to_owned).collect()),
        resources: one(resource),
        scope: Some("Namespaced".to_owned()),
    }
}

/// The subresource of `kubectl scale`.
pub const SCALE: &str = "scale";

const WRITES: [&str; 2] = ["CREATE", "UPDATE"];

fn checked_operations(rules: &Rules) -> Vec<&'static str> {
    let writes = WRITES.into_iter().filter(|_| rules.has_checks());
    writes.chain(rules.has_delete_checks().then_some("DELETE")).collect()
}

fn checked_requests(rules: &Rules) -> Vec<RuleWithOperations> {
    let scales = || requests_of(rules, &format!("{}/{SCALE}", rules.plural), &["UPDATE"]);
    let objects = requests_of(rules, rules.plural, &checked_operations(rules));
    std::iter::once(objects).chain(rules.has_scale_checks().then(scales)).collect()
}

/// What goes away loses its finalizers, and namespaces can be deleted, also while no manager answers.
fn conditions() -> Vec<MatchCondition> {
    let condition = |name: &str, expression: String| MatchCondition { name: name.to_owned(), expression };
    let cleaners = CLEANERS.map(|user| format!("'{user}'")).join(", ");
    vec![
        condition(
            "is-not-terminating",
            "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)".to_owned(),
        ),
        condition(
            "is-not-cleaned-up",
            format!("request.operation != 'DELETE' || !(request.userInfo.username in [{cleaners}])"),
        ),
    ]
}

/// Objects of these namespaces alone. Conversion cannot be limited so: it belongs to the CRD, and without it the API server
/// could not even list objects that are stored in another version.
fn among(namespaces: &BTreeSet<String>) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            // Which the API server itself keeps on every namespace.
            key: "kubernetes.io/metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(namespaces.iter().cloned().collect()),
        }]),
        ..LabelSelector::default()
    }
}

fn chosen<'rules>(
    options: &'rules Options,
    is_wanted: impl Fn(&Rules) -> bool + 'rules,
) -> impl Iterator<Item = &'static Rules> + 'rules {
    RULES.iter().filter(move |rules| is_wanted(rules) && is_chosen(rules, options))
}

pub(super) fn mutating(options: &Options) -> Option<MutatingWebhookConfiguration> {
    let webhooks: Vec<_> = chosen(options, Rules::has_defaults)
        .map(|rules| MutatingWebhook {
            name: webhook_name(rules),
            admission_review_versions: vec!["v1".to_owned()],
            client_config: options.target.client_config(MUTATING_PATH),
            failure_policy: Some("Fail".to_owned()),
            match_policy: Some("Equivalent".to_owned()),
            rules: Some(vec![requests_of(rules, rules.plural, &WRITES)]),
            match_conditions: Some(conditions()),
            namespace_selector: options.namespaces.names().map(among),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
            ..MutatingWebhook::default()
        })
        .collect();
    (!webhooks.is_empty()).then(|| MutatingWebhookConfiguration {
        metadata: configuration_metadata(),
        webhooks: Some(webhooks),
    })
}

pub(super) fn validating(options: &Options) -> Option<ValidatingWebhookConfiguration> {
    let webhooks: Vec<_> = chosen(options, |rules| !checked_operations(rules).is_empty())
        .map(|rules| ValidatingWebhook {
            name: webhook_name(rules),
            admission_review_versions: vec!["v1".to_owned()],
            client_config: options.target.client_config(VALIDATING_PATH),
            failure_policy: Some("Fail".to_owned()),
            match_policy: Some("Equivalent".to_owned()),
            rules: Some(checked_requests(rules)),
            match_conditions: Some(conditions()),
            namespace_selector: options.namespaces.names().map(among),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
            ..ValidatingWebhook::default()
        })
        .collect();
    (!webhooks.is_empty()).then(|| ValidatingWebhookConfiguration {
        metadata: configuration_metadata(),
        webhooks: Some(webhooks),
    })
}
