//! Identity providers whose tokens the API server accepts.

use hangar_wire::wire;

/// The issuer of the cluster's own service account tokens, which no other provider may claim.
pub const RESERVED_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// An identity provider. Its key in the map is its issuer URL.
#[wire]
pub struct OidcProvider {
    /// Certificate authorities in PEM for the issuer; the system's when empty.
    pub certificate_authority: Option<String>,
    /// Accepted audiences; a token must be issued for one of them.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub audiences: Vec<String>,
    /// Further checks of a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// How the claims of a token become a user and groups.
    pub claim_mappings: ClaimMappings,
}

/// A check of a token's claims.
#[wire]
pub struct ClaimValidationRule {
    /// CEL expression over `claims` that must be true.
    #[schemars(length(min = 1))]
    pub expression: String,
    /// Message when the expression is not true.
    pub message: Option<String>,
}

/// How the claims of a token become a user and groups.
#[wire]
pub struct ClaimMappings {
    /// CEL expression over `claims` that gives the user's name.
    #[schemars(length(min = 1))]
    pub username: String,
    /// CEL expression over `claims` that gives the groups.
    pub groups: Option<String>,
}
