//! Lifetimes of certificates.

use hangar_wire::wire;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A duration as Go writes it, such as `8760h`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "String", extend(
    // The length bounds what validation rules cost.
    "maxLength" = 64,
    "pattern" = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$",
))]
pub struct GoDuration(pub Duration);

/// Lifetimes of the certificates. The default is ten years for authorities and one year for others.
#[wire]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.caCertificateDuration) || duration(has(self.rootCaCertificateDuration) ? self.rootCaCertificateDuration : '87600h') >= duration(self.caCertificateDuration)",
        "message": "the kubernetes authority must live at least as long as the others: rootCaCertificateDuration >= caCertificateDuration",
    },
    {
        "rule": "!has(self.leafCertificateDuration) || [has(self.rootCaCertificateDuration) ? self.rootCaCertificateDuration : '87600h', has(self.caCertificateDuration) ? self.caCertificateDuration : '87600h'].all(authority, duration(authority) >= duration(self.leafCertificateDuration))",
        "message": "no certificate outlives its authority: leafCertificateDuration must not be longer than the authorities'",
    },
    {
        "rule": "[has(self.rootCaCertificateDuration) ? self.rootCaCertificateDuration : '1h', has(self.caCertificateDuration) ? self.caCertificateDuration : '1h', has(self.leafCertificateDuration) ? self.leafCertificateDuration : '1h'].all(given, duration(given) >= duration('10m'))",
        "message": "certificates must live for at least ten minutes, or they would be renewed all the time",
    },
]))]
pub struct Certificates {
    /// Lifetime of the kubernetes authority; ten years when empty.
    #[serde(rename = "rootCaCertificateDuration")]
    pub root_ca_certificate_duration: Option<GoDuration>,
    /// Lifetime of the etcd and front proxy authorities; ten years when empty.
    pub ca_certificate_duration: Option<GoDuration>,
    /// Lifetime of the certificates that servers and clients use; one year when empty.
    pub leaf_certificate_duration: Option<GoDuration>,
}
