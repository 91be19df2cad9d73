//! An etcd that kubeadm does not run; both versions have the same type.

use hangar_wire::wire;
use schemars::Schema;

use super::newer::refuse_empty;

/// An external etcd, which kubeadm does not run.
#[wire]
pub struct ExternalEtcd {
    /// Path on the machine of the certificate authority that signed etcd's certificates.
    #[schemars(length(min = 1, max = 512))]
    pub ca_file: String,
    /// Path on the machine of the client certificate.
    #[schemars(length(min = 1, max = 512))]
    pub cert_file: String,
    /// Client URLs of the members.
    #[schemars(length(max = 50), inner(length(min = 1, max = 512)))]
    pub endpoints: Vec<String>,
    /// Path on the machine of the client certificate's key.
    #[schemars(length(min = 1, max = 512))]
    pub key_file: String,
}

/// The bounds of the newer version.
pub(super) fn newer(schema: &mut Schema) {
    refuse_empty(schema, &["/properties/endpoints"]);
}
